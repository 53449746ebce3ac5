// --safe: the programs of a plan once more, with nothing in them that could be left out.
#pragma once

#include "tools/hydrac/Lower.h"
#include "tools/hydrac/Options.h"

#include <memory>
#include <string>
#include <vector>

namespace hydra {

/// What --safe makes of the flags: attention by matmuls, work on all rows, gradients sent as f32,
/// no pass that could be left out, and matmuls of f32 numbers where variables then have the types
/// that the plan has them in; but for what its settings say otherwise. Without the flag, where it
/// is implied: the same in bf16. Throws Error for a setting that means nothing.
CompileOptions safeOptions(const HydracOptions &options, ModelOp source, CompileOptions compile);

/// Throws Error for flags that --safe does not go with, and for settings that are none, before any
/// work.
void checkSafe(const HydracOptions &options);

/// What is said of the sizes of kernels, as --kernel-tiles takes it, or `none`.
std::string tilesText(const CompileOptions &compile);

using Optimizations = std::vector<std::unique_ptr<planfile::OptimizationT>>;

/// What the plan does in another way than its safe form; both have outlines.
Optimizations optimizationsOf(const Lowered &fast, const Lowered &safe);

/// Whether it is a pass, which is left out where it is off.
bool isPass(const planfile::OptimizationT &optimization);

/// The flags of the plan, but for one thing, which is as in the safe form.
CompileOptions withoutOptimization(CompileOptions fast, const CompileOptions &safe,
                                   const planfile::OptimizationT &optimization);

/// Throws Error for flags that --pretests does not go with, before any work.
void checkPretests(const HydracOptions &options);

/// Whether --pretests asks for a form without it, by its name or because it asks for all.
enum class Asked { No, WithAll, ByName };
Asked isAsked(const HydracOptions &options, const planfile::OptimizationT &optimization);

/// Throws Error for a name given to --pretests that is none of theirs.
void checkPretestNames(const HydracOptions &options, const Optimizations &optimizations);

} // namespace hydra
