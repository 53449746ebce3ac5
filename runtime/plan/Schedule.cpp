// The formulas of plan.fbs for run-time scalars.
#include "runtime/plan/Schedule.h"

#include "runtime/support/Error.h"
#include "runtime/support/LossLimit.h"
#include "runtime/support/NormSpike.h"
#include "runtime/support/Philox.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

namespace hydra::runtime {

using planfile::ScheduleKind;
using planfile::ScheduleT;

namespace {

/// The part of the peak that a step of the warm-up has.
double warmUp(const ScheduleT &schedule, int64_t step) {
  const double part =
      static_cast<double>(step + schedule.first) / static_cast<double>(schedule.warmup_steps);
  if (schedule.levels == 0)
    return part;
  const double levels = static_cast<double>(schedule.levels);
  return std::max(1.0, std::nearbyint(levels * part)) / levels;
}

double unclamped(const ScheduleT &schedule, int64_t step) {
  const ScheduleKind kind = schedule.kind;
  if (kind == ScheduleKind::step)
    return static_cast<double>(schedule.first + step);
  if (isCounted(kind))
    return 0.0;
  if (kind == ScheduleKind::constant)
    return schedule.peak;
  if (step < schedule.warmup_steps)
    return schedule.peak * warmUp(schedule, step);
  const int64_t decayStart = stepsBeforeDecay(schedule);
  if (kind == ScheduleKind::linear || step < decayStart)
    return schedule.peak;
  const double length =
      static_cast<double>(std::max<int64_t>(1, schedule.total_steps - decayStart));
  const double position = std::min(1.0, static_cast<double>(step - decayStart) / length);
  return schedule.floor +
         (schedule.peak - schedule.floor) * 0.5 * (1.0 + std::cos(std::numbers::pi * position));
}

template <typename Number> bool readNumber(std::string_view text, Number &number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// The text before a separator, which is taken off with it.
std::string_view takeUntil(std::string_view &text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

[[noreturn]] void refuse(std::string_view text) {
  support::fail("--scalar: '{}' is no number of a step; expected "
                "NAME=VALUE[,after=STEPS][,over=STEPS][,levels=N], "
                "such as s=1,after=3000,over=2000,levels=10",
                support::shown(text));
}

} // namespace

NamedSchedule parseSchedule(std::string_view text) {
  const std::string_view whole = text;
  NamedSchedule result;
  ScheduleT &schedule = result.schedule;
  schedule.kind = ScheduleKind::linear;
  schedule.first = 1; // so that the first step of a warm-up moves
  result.name = takeUntil(text, '=');
  if (result.name.empty() || whole.ends_with(',') ||
      !readNumber(takeUntil(text, ','), schedule.peak) || !std::isfinite(schedule.peak))
    refuse(whole);
  if (result.name == "lr" || result.name == "clip")
    support::fail("--scalar: {} is given by --{}", result.name, result.name);
  if (result.name == support::kNormSpike)
    support::fail("--scalar: {} is given by --norm-spike", result.name);
  if (result.name == support::kLossLimit)
    support::fail("--scalar: {} is given by --batch-filter", result.name);
  if (result.name == "step")
    support::fail("--scalar: step is the number of the step");
  for (const ScheduleKind kind : planfile::EnumValuesScheduleKind())
    if (isCounted(kind) && result.name == EnumNameScheduleKind(kind))
      support::fail("--scalar: {} is what the run counts or draws", result.name);
  while (!text.empty()) {
    std::string_view setting = takeUntil(text, ',');
    const std::string_view key = takeUntil(setting, '=');
    int64_t *const place = key == "after"    ? &schedule.delay_steps
                           : key == "over"   ? &schedule.warmup_steps
                           : key == "levels" ? &schedule.levels
                                             : nullptr;
    if (!place || *place != 0 || !readNumber(setting, *place) || *place < 0 || *place > kNoEnd)
      refuse(whole);
  }
  if (schedule.warmup_steps == 0 && schedule.levels > 0)
    support::fail("--scalar: levels of {} need over=STEPS to reach them",
                  support::shown(result.name));
  return result;
}

std::vector<NamedSchedule> parseSchedules(const std::vector<std::string> &texts) {
  std::vector<NamedSchedule> result;
  for (const std::string &text : texts) {
    NamedSchedule next = parseSchedule(text);
    for (const NamedSchedule &other : result)
      if (other.name == next.name)
        support::fail("--scalar: {} is given twice", support::shown(next.name));
    result.push_back(std::move(next));
  }
  return result;
}

void checkType(std::string_view name, support::DType dtype, const ScheduleT &schedule) {
  if (isCounted(schedule.kind))
    return;
  const bool whole = dtype == support::DType::I32;
  if (whole && (schedule.peak != std::nearbyint(schedule.peak) || schedule.warmup_steps > 0))
    support::fail("scalar {}: takes whole numbers, not {}", support::shown(name),
                  scheduleText(schedule));
  const double most = whole ? std::numeric_limits<int32_t>::max() : support::largestNumber(dtype);
  if (std::abs(schedule.peak) > most)
    support::fail("scalar {}: {:g} is beyond its type", support::shown(name), schedule.peak);
}

std::string scheduleText(const ScheduleT &schedule) {
  if (schedule.kind == ScheduleKind::step)
    return fmt::format("counts from {}", schedule.first);
  if (isCounted(schedule.kind))
    return schedule.kind == ScheduleKind::micro_batch ? "counts micro-batches"
                                                      : "drawn for every step";
  const bool ends = schedule.total_steps > 0 && schedule.total_steps < kNoEnd;
  std::string text = fmt::format("{} {:g}", EnumNameScheduleKind(schedule.kind), schedule.peak);
  if (decays(schedule.kind))
    text += fmt::format(" to {:g} at {}", schedule.floor,
                        ends ? fmt::format("step {}", schedule.total_steps) : "the last step");
  if (schedule.kind == ScheduleKind::wsd && ends && schedule.stable_steps >= 0)
    text += fmt::format(", stable for {}", schedule.stable_steps);
  if (schedule.warmup_steps > 0)
    text += fmt::format(", warm-up of {}", schedule.warmup_steps);
  if (schedule.warmup_steps > 0 && schedule.clamp && schedule.floor > 0)
    text += fmt::format(" from {:g}", schedule.floor);
  if (schedule.levels > 0)
    text += fmt::format(" in {} levels", schedule.levels);
  if (schedule.delay_steps > 0)
    text += fmt::format(", after {} steps of 0", schedule.delay_steps);
  return text;
}

DrawKey drawKey(uint64_t seed, int64_t step) {
  const auto words = support::Philox(seed, "draw", static_cast<uint64_t>(step)).block(0);
  return {static_cast<int32_t>(words[0]), static_cast<int32_t>(words[1])};
}

bool isCounted(ScheduleKind kind) {
  return kind == ScheduleKind::step || kind == ScheduleKind::draw_low ||
         kind == ScheduleKind::draw_high || kind == ScheduleKind::micro_batch;
}

bool decays(ScheduleKind kind) { return kind == ScheduleKind::cosine || kind == ScheduleKind::wsd; }

int64_t stepsBeforeDecay(const ScheduleT &schedule) {
  const bool stable = schedule.kind == ScheduleKind::wsd && schedule.stable_steps > 0;
  return schedule.warmup_steps + (stable ? schedule.stable_steps : 0);
}

ScheduleT resolveSchedule(ScheduleT schedule, int64_t runSteps, int64_t from) {
  const bool falls = decays(schedule.kind);
  if ((falls || schedule.clamp) && !isCounted(schedule.kind) && schedule.floor > schedule.peak)
    support::fail("its least value, {:g}, is above its largest, {:g}", schedule.floor,
                  schedule.peak);
  if (!falls)
    return schedule;
  const bool open = schedule.total_steps == 0;
  if (open)
    schedule.total_steps = runSteps;
  if (const int64_t before = stepsBeforeDecay(schedule); before > schedule.total_steps)
    support::fail("a {} schedule of {} steps decays only after {}",
                  EnumNameScheduleKind(schedule.kind), schedule.total_steps, before);
  if (schedule.stable_steps < 0) {
    const int64_t begin = std::max(open ? from : 0, schedule.warmup_steps);
    schedule.stable_steps =
        begin - schedule.warmup_steps + (schedule.total_steps - begin) * 85 / 100;
  }
  return schedule;
}

bool sameSchedule(const ScheduleT &one, const ScheduleT &other) {
  const auto fields = [](const ScheduleT &s) {
    return std::tie(s.kind, s.peak, s.floor, s.first, s.warmup_steps, s.stable_steps, s.total_steps,
                    s.clamp, s.delay_steps, s.levels);
  };
  return fields(one) == fields(other);
}

ScheduleT unpacked(const planfile::Schedule &schedule) {
  ScheduleT result;
  schedule.UnPackTo(&result);
  return result;
}

ScheduleT resolveSchedule(const planfile::Schedule &schedule, int64_t runSteps) {
  return resolveSchedule(unpacked(schedule), runSteps);
}

double scheduleValue(const ScheduleT &schedule, int64_t step) {
  if (step < schedule.delay_steps)
    return 0.0;
  const double value = unclamped(schedule, step - schedule.delay_steps);
  return schedule.clamp ? std::max(value, schedule.floor) : value;
}

} // namespace hydra::runtime
