// Measured steps beside the predicted schedule.
#include "runtime/run/Mispredictions.h"

#include "runtime/report/PlanNames.h"
#include "runtime/report/PlanNodes.h"
#include "runtime/report/PredictedTime.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

using namespace hydra::planfile;

namespace hydra::runtime {

namespace {

/// Microseconds of each step in a run of its program, or in those for all micro-batches of one
/// update.
std::unordered_map<const Step *, double> predictedSteps(const Plan &plan) {
  std::unordered_map<const Step *, double> predicted;
  for (const Program *program : *plan.programs()) {
    const bool repeats =
        program->role() == ProgramRole::count || program->role() == ProgramRole::accumulate;
    const double runs = repeats ? plan.accumulation() : 1;
    for (const report::PlanNode &node : report::nodesOf(plan, *program))
      if (const Step *step = node.block->node_as_Step())
        predicted[step] = runs * (node.end - node.begin);
  }
  return predicted;
}

} // namespace

std::vector<Misprediction> mispredictions(const Plan &plan, std::span<const StepTime> times,
                                          int runs) {
  std::unordered_map<const Step *, double> predicted = predictedSteps(plan);
  std::map<std::pair<std::string, std::string>, Misprediction> groups;
  for (const StepTime &time : times) {
    if (time.calls == 0)
      continue;
    const Step &step = *time.step;
    Misprediction &group = groups[{step.name()->str(), report::moduleText(plan, step.path())}];
    group.calls += double(time.calls) / runs;
    group.measured += 1e6 * time.seconds / runs;
    group.predicted += std::exchange(predicted[&step], 0.0); // once, however often a loop has it
  }
  std::vector<Misprediction> order;
  for (auto &[key, group] : groups) {
    std::tie(group.name, group.module) = key;
    order.push_back(group);
  }
  std::ranges::stable_sort(order, std::greater(), [](const Misprediction &one) {
    return std::abs(one.predicted - one.measured);
  });
  return order;
}

Misprediction wholeStep(const Plan &plan, double measured) {
  return {"the whole step", "", 1, measured, report::predictedStep(plan).total};
}

} // namespace hydra::runtime
