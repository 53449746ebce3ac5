// Repeats steps or calls of a session and says how long they take.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Session.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Seconds of each of `count` steps. A step is all a user waits for: scalars, inputs, the programs,
/// reading the loss. `each` is told them one by one, unless it is empty.
std::vector<double> timeSteps(Session &session, int count,
                              const std::function<void(double)> &each = {});

struct Spread {
  double median, mean, deviation, minimum; // the deviation of the sample: divided by n - 1
};

/// Of at least one value.
Spread spreadOf(std::vector<double> values);

/// Median, mean, deviation and minimum, tokens and FLOPs a second at the median, beside the rate of
/// a large matmul and the vendor's peak where they are known, and peak bytes.
std::string benchText(const PlanFile &file, const Session &session, Executor &executor,
                      const std::vector<double> &seconds);

/// Seconds of steps in their order.
struct BenchTimes {
  const std::vector<double> &warmUp, &steps;
};

/// {"plan", "warm_up_seconds": [...], "step_seconds": [...], "tokens", "flops",
/// "predicted_microseconds", "arena_bytes", "process_bytes"}: tokens, FLOPs and the prediction are
/// of one step.
std::string benchJson(const PlanFile &file, const Session &session, Executor &executor,
                      const BenchTimes &times);

} // namespace hydra::runtime
