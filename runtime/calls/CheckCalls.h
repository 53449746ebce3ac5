// Whether every library call of a plan is one that executors take.
#pragma once

#include "runtime/plan/plan_generated.h"

namespace hydra::runtime {

/// Throws Error at the first library call, or alternative to a launch, whose function is not known
/// or whose tensors and attributes it does not take: shapes, types, and where the elements lie. The
/// plan must have been verified (PlanVerifier.h).
void checkCalls(const planfile::Plan &plan);

} // namespace hydra::runtime
