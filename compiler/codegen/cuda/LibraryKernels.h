// Steps of a CUDA plan that are kernels written by hand: attention, copies, fills, the gradient of
// an embedding. Their templates (templates/*.cuh) are specialised to shapes and strides as text.
#pragma once

#include "dialects/plan/Plan.h"

#include <string>

namespace hydra::cuda {

/// On a `plan.kernel` made from a template: the text of its kernel, and [grid x, y, z, threads,
/// bytes of dynamic shared memory].
inline constexpr llvm::StringLiteral kSourceAttr = "hydra.source";
inline constexpr llvm::StringLiteral kLaunchAttr = "hydra.launch";

/// Replaces calls of functions that have a template by launches. Calls that stay are for libraries.
/// The module must have been through hydra-plan-memory; `architecture` as in `sm_90a`. Fails, with
/// the place, for a call that neither a template nor a library takes.
llvm::LogicalResult expandCalls(plan::PlanModuleOp module, llvm::StringRef architecture);

/// One CUDA C++ source with all kernels made from templates; empty when there are none.
std::string templateSource(plan::PlanModuleOp module);

} // namespace hydra::cuda
