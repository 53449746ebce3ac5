// A model behind all passes: the plan without code.
#pragma once

#include "compiler/driver/Driver.h"
#include "compiler/emit/EmitPlan.h"
#include "tools/hydrac/Settings.h"

#include <memory>
#include <vector>

namespace hydra {

struct Lowered {
  std::unique_ptr<Driver> driver;
  CompileOptions compile;
  EmitOptions emit;
  std::unique_ptr<planfile::PlanT> outline; ///< null where --compile-to ends before it
};

/// How a model is lowered.
struct Lowering {
  const Setting *setting = nullptr; ///< what is chosen beside the flags; null: nothing
  std::string without = {};         ///< a pass that is left out; empty: none
  bool safe = false;                ///< as --safe says
  /// What is as in the safe form, alone; null: nothing.
  const planfile::OptimizationT *omitted = nullptr;
  Driver::Care care = Driver::Care::Full;
};

/// With parameters gathered as far ahead of their readers as memory allows, and gradients exchanged
/// in slices where it does not allow more, unless the flags say how large these are. Reports what
/// is wrong with the model; throws support::Error for what is wrong with flags.
llvm::FailureOr<Lowered> lower(const HydracOptions &options, const Lowering &lowering = {});

/// Throws support::Error where --scan-checkpoint is asked of a model without scans.
void checkScans(const HydracOptions &options);

plan::PlanModuleOp planOf(mlir::ModuleOp module);

/// Whether an optimizer keeps something for parameters.
bool hasMoments(const planfile::PlanT &plan);

/// Of the arena, without what is in the memory of the host.
uint64_t bytesOf(const planfile::PlanT &plan);

} // namespace hydra
