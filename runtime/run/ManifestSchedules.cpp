// Every field of a schedule under its name.
#include "runtime/run/ManifestSchedules.h"

#include "runtime/plan/Schedule.h"
#include "runtime/support/Error.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <utility>

using namespace hydra::runtime;
using namespace hydra::planfile;
using nlohmann::json;

namespace {

constexpr std::array kNumbers = {std::pair("peak", &ScheduleT::peak),
                                 std::pair("floor", &ScheduleT::floor)};
constexpr std::array kSteps = {
    std::pair("first", &ScheduleT::first),         std::pair("warmup", &ScheduleT::warmup_steps),
    std::pair("stable", &ScheduleT::stable_steps), std::pair("total", &ScheduleT::total_steps),
    std::pair("delay", &ScheduleT::delay_steps),   std::pair("levels", &ScheduleT::levels)};

constexpr int64_t kMostSteps = int64_t{1} << 52; // which hydrac takes

json jsonOfSchedule(const ScheduleT &schedule) {
  json fields{{"kind", EnumNameScheduleKind(schedule.kind)}, {"clamp", schedule.clamp}};
  for (const auto &[name, member] : kNumbers)
    fields[name] = schedule.*member;
  for (const auto &[name, member] : kSteps)
    fields[name] = schedule.*member;
  return fields;
}

bool read(const json &fields, ScheduleT &schedule) {
  if (!fields.is_object() || fields.size() != 2 + kNumbers.size() + kSteps.size())
    return false;
  const auto field = [&](const char *name) { return fields.value(name, json()); };
  const json kind = field("kind"), clamp = field("clamp");
  bool known = false;
  for (const ScheduleKind one : EnumValuesScheduleKind())
    if (kind == EnumNameScheduleKind(one)) {
      schedule.kind = one;
      known = true;
    }
  if (!known || !clamp.is_boolean())
    return false;
  schedule.clamp = clamp.get<bool>();
  for (const auto &[name, member] : kNumbers) {
    const json value = field(name);
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      return false;
    schedule.*member = value.get<double>();
  }
  for (const auto &[name, member] : kSteps) {
    const json value = field(name);
    const int64_t least = member == &ScheduleT::stable_steps ? -1 : 0;
    if (!value.is_number_integer() || value.get<int64_t>() < least ||
        value.get<int64_t>() > kMostSteps)
      return false;
    schedule.*member = value.get<int64_t>();
  }
  return schedule.first <= 1;
}

/// Whether values can be computed by it.
bool isResolved(const ScheduleT &schedule) {
  return !decays(schedule.kind) || (schedule.total_steps > 0 && schedule.stable_steps >= 0 &&
                                    stepsBeforeDecay(schedule) <= schedule.total_steps);
}

} // namespace

json hydra::runtime::jsonOf(const SavedSchedules &saved) {
  json scalars = json::object();
  for (const auto &[name, schedule] : saved.scalars)
    scalars[name] = {{"open", jsonOfSchedule(schedule.open)},
                     {"present", jsonOfSchedule(schedule.present)},
                     {"plan", schedule.plan}};
  return {{"last_step", saved.lastStep}, {"scalars", scalars}};
}

std::optional<SavedSchedules> hydra::runtime::schedulesOf(const json &scalars) {
  SavedSchedules saved;
  const json last = scalars.value("last_step", json()), all = scalars.value("scalars", json());
  if (!last.is_number_integer() || last.get<int64_t>() < 0 || last.get<int64_t>() > kMostSteps ||
      !all.is_object())
    return std::nullopt;
  saved.lastStep = last.get<int64_t>();
  for (const auto &[name, one] : all.items()) {
    SavedSchedule &schedule = saved.scalars[name];
    if (!one.is_object() || !read(one.value("open", json()), schedule.open) ||
        !read(one.value("present", json()), schedule.present) || !isResolved(schedule.present) ||
        !one.value("plan", json()).is_string())
      return std::nullopt;
    schedule.plan = one["plan"].get<std::string>();
  }
  return saved;
}

json hydra::runtime::jsonOf(const SavedPolicies &saved) {
  return {{"flags", saved.flags}, {"numbers", saved.numbers}};
}

std::optional<SavedPolicies> hydra::runtime::policiesOf(const json &policies) {
  SavedPolicies saved;
  const json flags = policies.value("flags", json()), numbers = policies.value("numbers", json());
  if (!flags.is_object() || !numbers.is_object())
    return std::nullopt;
  for (const auto &[name, text] : flags.items()) {
    if (!text.is_string())
      return std::nullopt;
    saved.flags[name] = text.get<std::string>();
  }
  for (const auto &[name, number] : numbers.items()) {
    if (!number.is_number() || !std::isfinite(number.get<double>()))
      return std::nullopt;
    saved.numbers[name] = number.get<double>();
  }
  try {
    parsePolicies(saved.flags);
  } catch (const hydra::support::Error &) {
    return std::nullopt;
  }
  return saved;
}
