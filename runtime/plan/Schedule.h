// The value of a run-time scalar at a step.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>

namespace hydra::runtime {

/// Value at step `step` >= 0 (0 is the first), by the formulas in plan.fbs. The schedule must be
/// resolved.
double scheduleValue(const planfile::ScheduleT &schedule, int64_t step);

/// The schedule with numbers in place of what only a run of `runSteps` steps knows. Throws Error
/// when the steps before the decay are more than those of the schedule.
planfile::ScheduleT resolveSchedule(const planfile::Schedule &schedule, int64_t runSteps);
planfile::ScheduleT resolveSchedule(planfile::ScheduleT schedule, int64_t runSteps);

/// Whether schedules of this kind fall towards total_steps.
bool decays(planfile::ScheduleKind kind);

/// Steps of warm-up and at the peak; an unresolved stable part counts as 0.
int64_t stepsBeforeDecay(const planfile::ScheduleT &schedule);

} // namespace hydra::runtime
