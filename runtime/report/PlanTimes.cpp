// Works on packed copies of the plan, as those do who read the file.
#include "runtime/report/PlanTimes.h"

#include "runtime/report/PredictedTime.h"

namespace hydra::report {

using namespace planfile;

namespace {

using Blocks = flatbuffers::Vector<flatbuffers::Offset<Block>>;
using ChangedBlocks = std::vector<std::unique_ptr<BlockT>>;

void collect(const Blocks &blocks, bool conditional, std::vector<PlacedStep> &steps) {
  for (const Block *block : blocks) {
    if (const Step *step = block->node_as_Step())
      steps.push_back({step, conditional});
    if (const Loop *loop = block->node_as_Loop())
      collect(*loop->blocks(), conditional, steps);
    if (const Switch *choice = block->node_as_Switch())
      for (const Case *one : *choice->cases())
        collect(*one->blocks(), /*conditional=*/true, steps);
  }
}

void collect(const ChangedBlocks &blocks, std::vector<StepT *> &steps) {
  for (const auto &block : blocks) {
    if (StepT *step = block->node.AsStep())
      steps.push_back(step);
    if (const LoopT *loop = block->node.AsLoop())
      collect(loop->blocks, steps);
    if (const SwitchT *choice = block->node.AsSwitch())
      for (const auto &one : choice->cases)
        collect(one->blocks, steps);
  }
}

Cost withTime(const Cost &cost, double microseconds) {
  return {cost.flops(), cost.bytes(), microseconds};
}

/// Of programs from their steps, and of the plan from its programs.
void setTotals(PlanT &plan) {
  const PackedPlan packed(plan);
  for (uint32_t i = 0; i < packed->programs()->size(); ++i) {
    Cost &cost = plan.programs[i]->cost;
    cost = withTime(cost, predictedTime(*packed, *packed->programs()->Get(i)).total);
  }
  plan.cost = withTime(plan.cost, predictedStep(*packed).total);
}

} // namespace

PackedPlan::PackedPlan(const PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(CreatePlan(builder, &plan));
  bytes = builder.Release();
}

std::vector<PlacedStep> stepsOf(const Plan &plan) {
  std::vector<PlacedStep> steps;
  for (const Program *program : *plan.programs())
    collect(*program->blocks(), /*conditional=*/false, steps);
  return steps;
}

void setTimes(PlanT &plan, const std::function<double(size_t, const StepWork &)> &timeOf) {
  const PackedPlan packed(plan);
  const std::vector<PlacedStep> steps = stepsOf(*packed);
  std::vector<StepT *> changed;
  for (const auto &program : plan.programs)
    collect(program->blocks, changed);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (exchangeOf(*steps[i].step).kind != Action::NONE)
      continue;
    const StepWork work = workOf(*packed, *steps[i].step);
    changed[i]->limit_microseconds = work.limit;
    changed[i]->cost = withTime(changed[i]->cost, timeOf(i, work));
  }
  setTotals(plan);
}

void predictTimes(PlanT &plan, const MeasuredRates &rates) {
  plan.target->measured = rates.about;
  plan.target->sharing = std::make_unique<Sharing>(rates.sharing);
  setTimes(plan, [&](size_t, const StepWork &work) { return rates.microseconds(work); });
}

} // namespace hydra::report
