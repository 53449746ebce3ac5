// The marks of tuning in a plan.
#include "runtime/cuda/TunedPlan.h"

#include "runtime/support/Error.h"

#include <algorithm>

namespace hydra::runtime::cuda {

using namespace hydra::planfile;

/// An option of the header.
static constexpr const char *kTunedKey = "tuned";

void checkTunedFor(const PlanFile &file, std::string_view machine) {
  for (const KeyValue *option : *file.plan().header()->options()) {
    if (option->key()->string_view() != kTunedKey)
      continue;
    const std::string_view tunedFor = option->value()->string_view();
    if (!tunedFor.starts_with(machine)) // it may name what it did not choose
      support::fail(
          "{}: tuned for {}, but this is {}; tune the plan again, or use it as hydrac wrote it",
          file.origin(), tunedFor, machine);
  }
}

/// The optimization that tuning is, in a plan that lists them for its safe forms.
static void noteOptimization(std::vector<std::unique_ptr<OptimizationT>> &all) {
  constexpr const char *name = "tuned-kernels";
  if (all.empty() || std::ranges::any_of(all, [&](const auto &one) { return one->name == name; }))
    return;
  all.push_back(std::make_unique<OptimizationT>());
  all.back()->name = name;
  all.back()->fast = "on";
  all.back()->safe = "off";
}

void noteTunedFor(PlanT &plan, std::string machine) {
  auto option = std::make_unique<KeyValueT>();
  option->key = kTunedKey;
  option->value = std::move(machine);
  std::erase_if(plan.header->options, [](const auto &one) { return one->key == kTunedKey; });
  plan.header->options.push_back(std::move(option));
  noteOptimization(plan.optimizations);
}

static void collectSteps(const std::vector<std::unique_ptr<BlockT>> &blocks,
                         std::vector<StepT *> &steps) {
  for (const auto &block : blocks) {
    if (const LoopT *loop = block->node.AsLoop()) {
      for (uint64_t i = 0; i < loop->count; ++i)
        collectSteps(loop->blocks, steps);
      continue;
    }
    steps.push_back(block->node.AsStep());
    if (const SwitchT *choice = block->node.AsSwitch())
      for (const auto &entry : choice->cases)
        collectSteps(entry->blocks, steps);
  }
}

std::vector<StepT *> stepsInOrder(const ProgramT &program) {
  std::vector<StepT *> steps;
  collectSteps(program.blocks, steps);
  return steps;
}

} // namespace hydra::runtime::cuda
