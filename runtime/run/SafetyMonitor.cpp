// Rules and transitions.
#include "runtime/run/SafetyMonitor.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <utility>

namespace hydra::runtime {

namespace {

constexpr std::array<std::pair<SafetyStatus, std::string_view>, 6> kNames = {{
    {SafetyStatus::disabled, "DISABLED"},
    {SafetyStatus::pretesting, "PRETESTING"},
    {SafetyStatus::monitoring, "MONITORING"},
    {SafetyStatus::enabled, "ENABLED"},
    {SafetyStatus::failed, "FAILED"},
    {SafetyStatus::fallback, "FALLBACK"},
}};

constexpr double kNewest = 0.1; // weight of a value in its average
constexpr double kSpike = 2.0, kDrop = 0.5;
constexpr int64_t kMostAnomalies = 3;
constexpr size_t kLongestReason = 200;

/// The first value begins it.
void enter(std::optional<double> &mean, double value) {
  if (std::isfinite(value))
    mean = mean ? (1 - kNewest) * *mean + kNewest * value : value;
}

} // namespace

std::string_view statusName(SafetyStatus status) {
  return kNames[static_cast<size_t>(status)].second;
}

std::optional<SafetyStatus> statusOf(std::string_view name) {
  for (const auto &[status, word] : kNames)
    if (word == name)
      return status;
  return std::nullopt;
}

void SafetyMonitor::stop(SafetyStatus status, int64_t step, const std::string &reason) {
  now.status = status;
  now.disabledAt = step;
  now.reason = reason.substr(0, kLongestReason);
}

void SafetyMonitor::disable(int64_t step, const std::string &reason) {
  if (now.status == SafetyStatus::disabled && now.reason == reason)
    return; // since an earlier step
  stop(SafetyStatus::disabled, step, reason);
}

void SafetyMonitor::pretested(int64_t step, const std::string &problem) {
  if (!problem.empty())
    return stop(SafetyStatus::failed, step, problem);
  if (now.status != SafetyStatus::pretesting)
    return;
  now.status = SafetyStatus::monitoring;
  now.enabledAt = step;
}

void SafetyMonitor::giveUp(int64_t step, const std::string &optimization,
                           const std::string &problem) {
  now.without = optimization;
  now.withoutReason = problem.substr(0, kLongestReason);
  now.status = SafetyStatus::monitoring;
  now.enabledAt = step;
  now.counted = 0; // what was seen of other programs
}

std::vector<SafetyAnomaly> SafetyMonitor::observe(const SafetyObservation &seen) {
  std::vector<SafetyAnomaly> found;
  if (!watches())
    return found;
  const auto note = [&](std::string type, double value, double threshold, bool counts) {
    ++now.anomalies[type];
    now.counted += counts ? 1 : 0;
    found.push_back({seen.step, std::move(type), value, threshold});
  };
  // What the guard of updates looks at.
  const bool byNorm = seen.gradientNorm && !std::isfinite(*seen.gradientNorm);
  const double guard = byNorm ? *seen.gradientNorm : seen.loss;
  const bool refused = !std::isfinite(guard);
  if (refused) {
    note(fmt::format("{}_{}", std::isnan(guard) ? "nan" : "inf", byNorm ? "grad" : "loss"), guard,
         0, !options.scalesLoss);
  }
  if (seen.hasLabels && now.lossMean && seen.loss > kSpike * *now.lossMean &&
      std::isfinite(seen.loss))
    note("loss_spike", seen.loss, kSpike * *now.lossMean, true);
  if (rateMean && seen.tokensPerSecond < kDrop * *rateMean) {
    const SafetyAnomaly slow{seen.step, "throughput_drop", seen.tokensPerSecond, kDrop * *rateMean};
    if (options.countsThroughput)
      note(slow.type, slow.value, slow.threshold, true);
    else
      found.push_back(slow); // no checkpoint tells of it
  }
  if (seen.hasLabels)
    enter(now.lossMean, seen.loss);
  enter(rateMean, seen.tokensPerSecond);
  if (refused && !options.scalesLoss) {
    stop(SafetyStatus::fallback, seen.step,
         fmt::format("step {}: the {} is {}", seen.step, byNorm ? "gradient norm" : "loss", guard));
  } else if (now.counted >= kMostAnomalies) {
    stop(SafetyStatus::fallback, seen.step, fmt::format("too many anomalies ({})", now.counted));
  } else if (seen.step - now.enabledAt.value_or(0) >= options.window) {
    now.status = SafetyStatus::enabled;
  }
  return found;
}

} // namespace hydra::runtime
