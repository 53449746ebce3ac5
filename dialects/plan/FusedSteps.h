// Steps that are parts of another one: kernels of it do their work (KernelExpansion.h).
#pragma once

#include "dialects/plan/Plan.h"

namespace hydra::plan {

/// What passes that fuse steps promise to whoever expands them: parts stand right beside the step
/// whose kernels do their work, that step reads what they make, or they alone what it makes, no
/// step is in two such groups, and those that are one batch do not need each other.
llvm::LogicalResult verifyFusedSteps(ProgramOp program);

} // namespace hydra::plan
