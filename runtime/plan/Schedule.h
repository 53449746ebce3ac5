// The value of a run-time scalar at a step.
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/support/DType.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::runtime {

/// Value at step `step` >= 0 (0 is the first), by the formulas in plan.fbs; 0 of what is drawn and
/// of micro-batches. The schedule must be resolved.
double scheduleValue(const planfile::ScheduleT &schedule, int64_t step);

/// The words of the key that a run draws by at a step, each as i32.
struct DrawKey {
  int32_t low, high;
};
/// Words 0 and 1 of element 0 of the stream "draw" of that seed and step
/// (runtime/support/Philox.h).
DrawKey drawKey(uint64_t seed, int64_t step);

/// Whether runs count or draw the values of such a schedule, which nobody can give.
bool isCounted(planfile::ScheduleKind kind);

/// The schedule with numbers instead of what only a run of `runSteps` steps knows. Where a run that
/// is resumed behind step `from` is to have another end, 85% of the steps that remain are stable.
/// Throws Error when the steps before the decay are more than those of the schedule, and when it
/// would fall to more than its peak.
planfile::ScheduleT resolveSchedule(const planfile::Schedule &schedule, int64_t runSteps);
planfile::ScheduleT resolveSchedule(planfile::ScheduleT schedule, int64_t runSteps,
                                    int64_t from = 0);

planfile::ScheduleT unpacked(const planfile::Schedule &schedule);

/// Whether two schedules are equal in every field.
bool sameSchedule(const planfile::ScheduleT &one, const planfile::ScheduleT &other);

/// The last step of a run that goes on for ever: nothing decays.
inline constexpr int64_t kNoEnd = int64_t{1} << 40;

/// A scalar's schedule as --scalar has it: `NAME=VALUE[,after=STEPS][,over=STEPS][,levels=N]`,
/// 0 for so many steps and then VALUE, reached over so many steps and by so many levels. Throws
/// Error for anything else, and for scalars that have flags of their own.
struct NamedSchedule {
  std::string name;
  planfile::ScheduleT schedule;
};
NamedSchedule parseSchedule(std::string_view text);
/// The same of several; no name twice.
std::vector<NamedSchedule> parseSchedules(const std::vector<std::string> &texts);

/// Throws Error when the numbers of a scalar's schedule are none of its type.
void checkType(std::string_view name, support::DType dtype, const planfile::ScheduleT &schedule);

/// In words, such as "cosine 0.001 to 0.0001 at step 1000, warm-up of 100".
std::string scheduleText(const planfile::ScheduleT &schedule);

/// Whether schedules of this kind fall towards total_steps.
bool decays(planfile::ScheduleKind kind);

/// Steps of warm-up and at the peak; an unresolved stable part counts as 0.
int64_t stepsBeforeDecay(const planfile::ScheduleT &schedule);

} // namespace hydra::runtime
