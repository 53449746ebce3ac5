// Predicted steps as if they had been measured.
#include "runtime/report/Measurement.h"

#include "runtime/report/PlanNodes.h"

namespace hydra::report {

using namespace planfile;

double Measurement::seconds() const {
  double sum = 0;
  for (const StepMeasure &one : steps)
    sum += one.seconds;
  return sum;
}

std::vector<std::pair<uint32_t, uint64_t>> programsOfStep(const Plan &plan) {
  const auto &programs = *plan.programs();
  std::vector<std::pair<uint32_t, uint64_t>> found;
  bool trains = false;
  for (uint32_t i = 0; i < programs.size(); ++i) {
    const ProgramRole role = programs.Get(i)->role();
    if (!trains && (role == ProgramRole::train || role == ProgramRole::accumulate)) {
      trains = true;
      if (i > 0 && programs.Get(i - 1)->role() == ProgramRole::count)
        found.emplace_back(i - 1, plan.accumulation());
      found.emplace_back(i, plan.accumulation());
    } else if (role == ProgramRole::apply) {
      found.emplace_back(i, 1);
    }
  }
  if (!trains && programs.size() > 0)
    return {{0, 1}};
  return found;
}

Measurement predictedMeasurement(const Plan &plan) {
  Measurement all;
  for (const auto &[program, runs] : programsOfStep(plan))
    for (const PlanNode &node : nodesOf(plan, *plan.programs()->Get(program)))
      if (const Step *step = node.block->node_as_Step()) {
        const double calls = node.times * double(runs);
        all.steps.push_back({.step = step,
                             .program = program,
                             .calls = calls,
                             .seconds = 1e-6 * calls * step->cost()->microseconds(),
                             .firstSeconds = {}});
      }
  all.wall = all.seconds();
  return all;
}

} // namespace hydra::report
