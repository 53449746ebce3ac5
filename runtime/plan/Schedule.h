// The value of a run-time scalar at a step.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>

namespace hydra::runtime {

/// Value at step `step` >= 0 (0 is the first), by the formulas in plan.fbs.
double scheduleValue(const planfile::Schedule &schedule, int64_t step);

} // namespace hydra::runtime
