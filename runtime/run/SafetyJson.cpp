// Members of the object, and what they may be.
#include "runtime/run/SafetyJson.h"

#include "runtime/support/Shown.h"

#include <cmath>
#include <fmt/core.h>

#include <cstdint>

using nlohmann::json;

namespace hydra::runtime {

json safetyJson(const SafetyState &state) {
  json object{{"status", statusName(state.status)},
              {"configuration", state.configuration},
              {"reason", state.reason},
              {"anomalies", json::object()},
              {"counted", static_cast<uint64_t>(state.counted)}};
  for (const auto &[type, count] : state.anomalies)
    object["anomalies"][type] = static_cast<uint64_t>(count);
  if (!state.without.empty()) {
    object["without"] = state.without;
    object["without_reason"] = state.withoutReason;
  }
  if (state.enabledAt)
    object["enabled_at_step"] = static_cast<uint64_t>(*state.enabledAt);
  if (state.disabledAt)
    object["disabled_at_step"] = static_cast<uint64_t>(*state.disabledAt);
  if (state.lossMean)
    object["loss_mean"] = *state.lossMean;
  return object;
}

std::optional<SafetyState> safetyFrom(const json &object, std::string &problem) {
  SafetyState state;
  const auto wrong = [&](const std::string &name, const json *value, const char *expected) {
    if (problem.empty())
      problem = fmt::format("{} is {}; expected {}", support::shown(name),
                            value ? support::shown(value->dump()) : "missing", expected);
  };
  const auto member = [&](const char *name) -> const json * {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  };
  const auto text = [&](const char *name) {
    const json *value = member(name);
    if (value && value->is_string())
      return value->get<std::string>();
    wrong(name, value, "a string");
    return std::string();
  };
  const auto count = [&](const std::string &name, const json *value) {
    if (value && value->is_number_unsigned() && value->get<uint64_t>() <= INT64_MAX)
      return value->get<int64_t>();
    wrong(name, value, "an integer from 0");
    return int64_t{0};
  };
  const auto step = [&](const char *name) {
    const json *value = member(name);
    return value ? std::optional(count(name, value)) : std::nullopt;
  };
  if (const std::optional<SafetyStatus> status = statusOf(text("status")))
    state.status = *status;
  else
    wrong("status", member("status"), "MONITORING or another status");
  state.configuration = text("configuration");
  state.reason = text("reason");
  if (member("without")) {
    state.without = text("without");
    state.withoutReason = text("without_reason");
  }
  state.enabledAt = step("enabled_at_step");
  state.disabledAt = step("disabled_at_step");
  state.counted = count("counted", member("counted"));
  if (const json *all = member("anomalies"); all && all->is_object())
    for (const auto &[type, value] : all->items())
      state.anomalies[type] = count("anomalies " + type, &value);
  else
    wrong("anomalies", all, "an object");
  if (const json *mean = member("loss_mean")) {
    if (mean->is_number())
      state.lossMean = mean->get<double>();
    else
      wrong("loss_mean", mean, "a number");
  }
  return problem.empty() ? std::optional(state) : std::nullopt;
}

} // namespace hydra::runtime
