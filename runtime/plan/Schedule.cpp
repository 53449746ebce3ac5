// The formulas of plan.fbs for run-time scalars.
#include "runtime/plan/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hydra::runtime {

using planfile::Schedule;
using planfile::ScheduleKind;

namespace {

double unclamped(const Schedule &schedule, int64_t step) {
  const ScheduleKind kind = schedule.kind();
  if (kind == ScheduleKind::step)
    return static_cast<double>(schedule.first() + step);
  if (kind == ScheduleKind::constant)
    return schedule.peak();
  if (step < schedule.warmup_steps())
    return schedule.peak() * static_cast<double>(step + schedule.first()) /
           static_cast<double>(schedule.warmup_steps());
  const int64_t decayStart =
      schedule.warmup_steps() + (kind == ScheduleKind::wsd ? schedule.stable_steps() : 0);
  if (kind == ScheduleKind::linear || step < decayStart)
    return schedule.peak();
  const double length =
      static_cast<double>(std::max<int64_t>(1, schedule.total_steps() - decayStart));
  const double position = std::min(1.0, static_cast<double>(step - decayStart) / length);
  return schedule.floor() +
         (schedule.peak() - schedule.floor()) * 0.5 * (1.0 + std::cos(std::numbers::pi * position));
}

} // namespace

double scheduleValue(const Schedule &schedule, int64_t step) {
  const double value = unclamped(schedule, step);
  return schedule.clamp() ? std::max(value, schedule.floor()) : value;
}

} // namespace hydra::runtime
