// Whether every library call of a plan is one that executors take.
#pragma once

#include "runtime/plan/plan_generated.h"

namespace hydra::runtime {

/// Throws Error at the first step, or alternative to one, whose function does not take its tensors
/// and fields: shapes, types, and where the elements lie. The plan must have been verified
/// (PlanVerifier.h).
void checkCalls(const planfile::Plan &plan);
/// The same for one step of the plan.
void checkCalls(const planfile::Plan &plan, const planfile::Step &step);

} // namespace hydra::runtime
