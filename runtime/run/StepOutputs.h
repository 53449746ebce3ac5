// What a training step tells beside its loss, such as what routers do or the norms of groups:
// outputs of its programs that are a few numbers.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Numbers in row-major order.
struct StepOutput {
  std::string name;
  std::vector<int64_t> shape; ///< at most two dimensions
  std::vector<double> values; ///< at most 4096
};

/// Means over the micro-batches of a step, and what the update behind them gives. Left out are the
/// loss, gradients, their norm, whether an update was applied, and what each rank has its own part
/// of.
class StepOutputs {
public:
  explicit StepOutputs(const planfile::Plan &plan) : plan(plan) {}
  /// Whether an output is one of these.
  static bool tells(const planfile::Plan &plan, const planfile::Output &output);

  /// A step begins.
  void clear();
  /// The program has run for a micro-batch.
  void add(Executor &executor, const planfile::Program &program);
  /// A program of its own has updated, behind the micro-batches.
  void addUpdate(Executor &executor, const planfile::Program &program);
  /// The step has ended.
  const std::vector<StepOutput> &means();

private:
  void addTo(std::vector<StepOutput> &to, Executor &executor, const planfile::Program &program);

  const planfile::Plan &plan;
  std::vector<StepOutput> sums, ofUpdate;
  size_t runs = 0;
  bool divided = false;
};

} // namespace hydra::runtime
