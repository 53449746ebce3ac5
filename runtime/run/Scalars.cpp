// Evaluates schedules and rounds to each scalar's dtype.
#include "runtime/run/Scalars.h"

#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Schedule.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

using namespace hydra::runtime;
using namespace hydra::planfile;

namespace support = hydra::support;

namespace {

/// hydra-optimizer adds it, where steps are to be tried.
constexpr std::string_view kHold = "hold";

void apply(const ScheduleChange &change, ScheduleT &schedule) {
  schedule = change.whole.value_or(schedule);
  schedule.kind = change.kind.value_or(schedule.kind);
  schedule.peak = change.peak.value_or(schedule.peak);
  schedule.floor = change.floor.value_or(schedule.floor);
  schedule.warmup_steps = change.warmup.value_or(schedule.warmup_steps);
  schedule.stable_steps = change.stable.value_or(schedule.stable_steps);
  schedule.total_steps = change.total.value_or(schedule.total_steps);
}

/// Throws Error when the numbers of a schedule are none of the tensor's type.
void checkType(const std::string &name, const Tensor &tensor, const ScheduleT &schedule) {
  if (schedule.kind == ScheduleKind::step)
    return;
  const bool whole = dtypeOf(tensor) == hydra::support::DType::I32;
  if (whole && (schedule.peak != std::nearbyint(schedule.peak) || schedule.warmup_steps > 0))
    hydra::support::fail("scalar {}: takes whole numbers, not {}", support::shown(name),
                         scheduleText(schedule));
  const double most =
      whole ? std::numeric_limits<int32_t>::max() : std::numeric_limits<float>::max();
  if (std::abs(schedule.peak) > most)
    hydra::support::fail("scalar {}: {:g} is beyond its type", support::shown(name), schedule.peak);
}

} // namespace

Scalars::Scalars(const Plan &plan, const std::map<std::string, ScheduleChange> &changes,
                 int64_t runSteps) {
  std::string names;
  for (const Scalar *scalar : *plan.scalars()) {
    const std::string name = scalar->name()->str();
    if (name == kHold) {
      holding = scalar;
      holdingTensor = plan.tensors()->Get(scalar->tensor());
      continue;
    }
    names += (names.empty() ? "" : ", ") + name;
    ScheduleT schedule;
    scalar->schedule()->UnPackTo(&schedule);
    if (const auto change = changes.find(name); change != changes.end())
      apply(change->second, schedule);
    try {
      schedule = resolveSchedule(schedule, runSteps > 0 ? runSteps : kNoEnd);
    } catch (const support::Error &error) {
      support::fail("{}: {}", support::shown(name), error.what());
    }
    checkType(name, *plan.tensors()->Get(scalar->tensor()), schedule);
    entries.push_back(
        {name, plan.tensors()->Get(scalar->tensor()), scalar->tensor(), std::move(schedule)});
  }
  for (const auto &[name, change] : changes) {
    if (names.empty())
      support::fail("the plan has no run-time scalars, so no '{}'", support::shown(name));
    if (!value(name, 0))
      support::fail("the plan has no scalar '{}'; it has {}", support::shown(name),
                    support::shown(names, 300));
  }
}

void Scalars::write(Executor &executor, int64_t step) const {
  for (const Entry &entry : entries)
    writeNumber(executor, *entry.tensor, entry.tensorIndex, scheduleValue(entry.schedule, step));
  if (holding)
    writeNumber(executor, *holdingTensor, holding->tensor(), 0.0);
}

void Scalars::hold(Executor &executor) const {
  if (holding)
    writeNumber(executor, *holdingTensor, holding->tensor(),
                std::numeric_limits<double>::infinity());
}

void Scalars::writeNumber(Executor &executor, const Tensor &tensor, uint32_t index, double value) {
  std::array<std::byte, 8> bytes;
  const std::span<std::byte> used = std::span(bytes).first(support::byteSize(dtypeOf(tensor)));
  support::fromDoubles(dtypeOf(tensor), std::span(&value, 1), used);
  executor.write(index, used);
}

std::optional<double> Scalars::value(std::string_view name, int64_t step) const {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return scheduleValue(entry.schedule, step);
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> Scalars::describe() const {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Entry &entry : entries)
    rows.emplace_back(entry.name, scheduleText(entry.schedule));
  return rows;
}
