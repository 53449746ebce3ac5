// Evaluates schedules and rounds to each scalar's dtype.
#include "runtime/run/Scalars.h"

#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Schedule.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>
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
  if (change.kind == ScheduleKind::wsd && schedule.kind != ScheduleKind::wsd)
    schedule.stable_steps = -1; // unless a flag says how many
  schedule.kind = change.kind.value_or(schedule.kind);
  if (change.warmup.value_or(0) > 0 && schedule.kind == ScheduleKind::constant) {
    if (change.kind)
      hydra::support::fail(
          "--warmup: the rate of --schedule constant has none; linear stays at its "
          "peak behind one");
    schedule.kind = ScheduleKind::linear;
  }
  if (change.stable && schedule.kind != ScheduleKind::wsd)
    hydra::support::fail("--stable is for --schedule wsd");
  if (change.total && !decays(schedule.kind))
    hydra::support::fail("--schedule-steps is for --schedule cosine and wsd, which end");
  schedule.peak = change.peak.value_or(schedule.peak);
  schedule.floor = change.floor.value_or(schedule.floor);
  if (const double floor = change.floor.value_or(0);
      floor > 0 && floor <= schedule.peak && schedule.kind == ScheduleKind::constant)
    hydra::support::fail("--min-lr: the rate of --schedule constant stays at its peak");
  schedule.clamp = schedule.clamp || change.floor;
  schedule.warmup_steps = change.warmup.value_or(schedule.warmup_steps);
  schedule.stable_steps = change.stable.value_or(schedule.stable_steps);
  schedule.total_steps = change.total.value_or(schedule.total_steps);
}

/// Whether it ends where the run does.
bool followsRun(const ScheduleT &schedule) {
  return decays(schedule.kind) && schedule.total_steps == 0;
}

const SavedSchedule *savedSchedule(const SavedSchedules *saved, const std::string &name) {
  if (!saved)
    return nullptr;
  const auto found = saved->scalars.find(name);
  return found == saved->scalars.end() ? nullptr : &found->second;
}

} // namespace

Scalars::Scalars(const Plan &plan, const std::map<std::string, ScheduleChange> &changes,
                 int64_t runSteps, const SavedSchedules *saved, uint64_t seed)
    : seed(seed), lastStep(runSteps > 0 || !saved ? runSteps : saved->lastStep) {
  std::string names;
  for (const Scalar *scalar : *plan.scalars()) {
    const std::string name = scalar->name()->str();
    if (name == kHold) {
      holding = scalar;
      holdingTensor = plan.tensors()->Get(scalar->tensor());
      continue;
    }
    if (!isCounted(scalar->schedule()->kind())) // which nobody can give
      names += (names.empty() ? "" : ", ") + name;
    SavedSchedule schedule{.open = unpacked(*scalar->schedule()), .present = {}, .plan = {}};
    schedule.plan = scheduleText(schedule.open);
    const SavedSchedule *const before = savedSchedule(saved, name);
    if (before && isCounted(before->open.kind) == isCounted(schedule.open.kind))
      schedule.open = before->open;
    if (const auto change = changes.find(name); change != changes.end())
      apply(change->second, schedule.open);
    const bool goesOn = before && sameSchedule(schedule.open, before->open) &&
                        (!followsRun(schedule.open) || lastStep == saved->lastStep);
    try {
      schedule.present = goesOn ? before->present
                                : resolveSchedule(schedule.open, lastStep > 0 ? lastStep : kNoEnd,
                                                  saved ? saved->step : 0);
    } catch (const support::Error &error) {
      support::fail("{}: {}", support::shown(name), error.what());
    }
    checkType(name, dtypeOf(*plan.tensors()->Get(scalar->tensor())), schedule.present);
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

double Scalars::at(const Entry &entry, int64_t step) const {
  if (step == entry.setStep)
    return entry.setValue;
  const ScheduleKind kind = entry.schedule.present.kind;
  if (kind == ScheduleKind::draw_low)
    return drawKey(seed, step).low;
  if (kind == ScheduleKind::draw_high)
    return drawKey(seed, step).high;
  return scheduleValue(entry.schedule.present, step);
}

const Scalars::Entry *Scalars::find(std::string_view name) const {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

void Scalars::write(Executor &executor, int64_t step) const {
  for (const Entry &entry : entries)
    writeNumber(executor, *entry.tensor, entry.tensorIndex, at(entry, step));
  if (holding)
    writeNumber(executor, *holdingTensor, holding->tensor(), 0.0);
}

void Scalars::writeMicroBatch(Executor &executor, uint64_t number) const {
  for (const Entry &entry : entries)
    if (entry.schedule.present.kind == ScheduleKind::micro_batch)
      writeNumber(executor, *entry.tensor, entry.tensorIndex, static_cast<double>(number));
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
  const Entry *const entry = find(name);
  return entry ? std::optional(at(*entry, step)) : std::nullopt;
}

std::optional<double> Scalars::scheduled(std::string_view name, int64_t step) const {
  const Entry *const entry = find(name);
  return entry ? std::optional(scheduleValue(entry->schedule.present, step)) : std::nullopt;
}

void Scalars::set(std::string_view name, int64_t step, double value) {
  if (Entry *const entry = find(name)) {
    entry->setStep = step;
    entry->setValue = value;
  }
}

const ScheduleT *Scalars::decaying() const {
  const Entry *const rate = find("lr");
  const ScheduleT *const schedule = rate ? &rate->schedule.present : nullptr;
  return schedule && schedule->kind == ScheduleKind::wsd && schedule->total_steps < kNoEnd
             ? schedule
             : nullptr;
}

std::optional<int64_t> Scalars::endOfDecay() const {
  const ScheduleT *const schedule = decaying();
  return schedule ? std::optional(schedule->total_steps) : std::nullopt;
}

bool Scalars::isStable(int64_t step) const {
  const ScheduleT *const schedule = decaying();
  return schedule && step >= schedule->warmup_steps && step < stepsBeforeDecay(*schedule);
}

void Scalars::decay(int64_t begin, int64_t end) {
  if (!decaying())
    return;
  ScheduleT &schedule = find("lr")->schedule.present;
  schedule.stable_steps = begin - schedule.warmup_steps;
  schedule.total_steps = end;
}

bool Scalars::waits(std::string_view name) const {
  const Entry *const entry = find(name);
  return entry && entry->schedule.open.delay_steps > 0;
}

bool Scalars::start(std::string_view name, int64_t step, std::optional<int64_t> over) {
  Entry *const entry = find(name);
  if (!entry || step >= entry->schedule.present.delay_steps)
    return false;
  ScheduleT &schedule = entry->schedule.present;
  schedule.delay_steps = step;
  schedule.warmup_steps = over.value_or(schedule.warmup_steps);
  return true;
}

std::vector<std::pair<std::string, std::string>> Scalars::describe() const {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Entry &entry : entries)
    if (!isCounted(entry.schedule.present.kind))
      rows.emplace_back(entry.name, scheduleText(entry.schedule.present));
  return rows;
}

SavedSchedules Scalars::save(int64_t step) const {
  SavedSchedules saved{.scalars = {}, .step = step, .lastStep = 0};
  for (const Entry &entry : entries) {
    saved.scalars[entry.name] = entry.schedule;
    if (followsRun(entry.schedule.open))
      saved.lastStep = lastStep;
  }
  return saved;
}
