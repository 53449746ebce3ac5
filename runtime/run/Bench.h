// Repeats steps or calls of a session and says how long they take.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Session.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Seconds of each of `count` steps: of the first from its beginning to its end, of the others from
/// the end of the one in front. A step is all a user waits for: scalars, inputs, the programs,
/// reading the loss. `each` is told them one by one, unless it is empty; then steps wait for it.
std::vector<double> timeSteps(Session &session, int count,
                              const std::function<void(double)> &each = {});

struct Spread {
  double median, mean, deviation, minimum; // the deviation of the sample: divided by n - 1
};

/// Of at least one value.
Spread spreadOf(std::vector<double> values);

/// Median, mean, deviation and minimum, tokens and FLOPs a second at the median, beside the rate of
/// a large matmul and the vendor's peak where they are known, what the device told while it ran
/// them, and peak bytes.
std::string benchText(const PlanFile &file, const Session &session, Executor &executor,
                      const std::vector<double> &seconds,
                      const std::optional<DeviceReadings> &device = {});

/// Seconds of steps in their order.
struct BenchTimes {
  const std::vector<double> &warmUp, &steps;
};

/// {"plan", "warm_up_seconds": [...], "step_seconds": [...], "tokens", "flops",
/// "predicted_microseconds", "arena_bytes", "process_bytes"}: tokens, FLOPs and the prediction are
/// of one step. Behind these, of a device that is watched, {"clock_mhz", "clock_min_mhz",
/// "clock_max_mhz", "tflops_per_ghz", "watts", "joules", "joules_counted", "celsius", "throttled",
/// "device_samples", "device_unknown"}: medians, mean watts, joules of a step (by a counter of the
/// device, or mean watts times the time), the highest temperature, in how many samples what
/// throttled the clock, and what is not known, which is null.
std::string benchJson(const PlanFile &file, const Session &session, Executor &executor,
                      const BenchTimes &times, const std::optional<DeviceReadings> &device = {});

} // namespace hydra::runtime
