// The formulas of plan.fbs for run-time scalars.
#include "runtime/plan/Schedule.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hydra::runtime {

using planfile::ScheduleKind;
using planfile::ScheduleT;

namespace {

double unclamped(const ScheduleT &schedule, int64_t step) {
  const ScheduleKind kind = schedule.kind;
  if (kind == ScheduleKind::step)
    return static_cast<double>(schedule.first + step);
  if (kind == ScheduleKind::constant)
    return schedule.peak;
  if (step < schedule.warmup_steps)
    return schedule.peak * static_cast<double>(step + schedule.first) /
           static_cast<double>(schedule.warmup_steps);
  const int64_t decayStart = stepsBeforeDecay(schedule);
  if (kind == ScheduleKind::linear || step < decayStart)
    return schedule.peak;
  const double length =
      static_cast<double>(std::max<int64_t>(1, schedule.total_steps - decayStart));
  const double position = std::min(1.0, static_cast<double>(step - decayStart) / length);
  return schedule.floor +
         (schedule.peak - schedule.floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * position));
}

} // namespace

bool decays(ScheduleKind kind) { return kind == ScheduleKind::cosine || kind == ScheduleKind::wsd; }

int64_t stepsBeforeDecay(const ScheduleT &schedule) {
  const bool stable = schedule.kind == ScheduleKind::wsd && schedule.stable_steps > 0;
  return schedule.warmup_steps + (stable ? schedule.stable_steps : 0);
}

ScheduleT resolveSchedule(ScheduleT schedule, int64_t runSteps) {
  if (!decays(schedule.kind))
    return schedule;
  if (schedule.total_steps == 0)
    schedule.total_steps = runSteps;
  if (const int64_t before = stepsBeforeDecay(schedule); before > schedule.total_steps)
    support::fail("a {} schedule of {} steps decays only after {}",
                  EnumNameScheduleKind(schedule.kind), schedule.total_steps, before);
  if (schedule.stable_steps < 0)
    schedule.stable_steps = (schedule.total_steps - schedule.warmup_steps) * 85 / 100;
  return schedule;
}

ScheduleT resolveSchedule(const planfile::Schedule &schedule, int64_t runSteps) {
  ScheduleT unpacked;
  schedule.UnPackTo(&unpacked);
  return resolveSchedule(unpacked, runSteps);
}

double scheduleValue(const ScheduleT &schedule, int64_t step) {
  const double value = unclamped(schedule, step);
  return schedule.clamp ? std::max(value, schedule.floor) : value;
}

} // namespace hydra::runtime
