// Walks along the list of steps from the one that is asked for.
#include "runtime/report/StepFlow.h"

#include <algorithm>

namespace hydra::report {

using namespace planfile;
using runtime::ByteRange;
using runtime::LoopNest;

bool StepFlow::Node::excludes(const Node &other) const {
  for (size_t i = 0; i < std::min(cases.size(), other.cases.size()); ++i) {
    if (cases[i].first != other.cases[i].first)
      return false;
    if (cases[i].second != other.cases[i].second)
      return true;
  }
  return false;
}

bool StepFlow::Node::isSureFor(const Node &other) const {
  return cases.size() <= other.cases.size() &&
         std::equal(cases.begin(), cases.end(), other.cases.begin());
}

StepFlow::StepFlow(const Plan &plan, const Program &program) : plan(plan), program(program) {
  Node around{};
  collect(*program.blocks(), around);
}

void StepFlow::collect(const Blocks &blocks, Node &around) {
  for (const Block *block : blocks) {
    if (const Step *step = block->node_as_Step()) {
      list.push_back(around);
      list.back().step = step;
    } else if (const Loop *loop = block->node_as_Loop()) {
      const auto first = static_cast<uint32_t>(list.size());
      around.loops.push_back(loop);
      collect(*loop->blocks(), around);
      around.loops.pop_back();
      for (size_t i = first; i < list.size(); ++i)
        if (list[i].loopEnd == 0) {
          list[i].loopBegin = first;
          list[i].loopEnd = static_cast<uint32_t>(list.size());
        }
    } else if (const Switch *choice = block->node_as_Switch()) {
      for (uint32_t i = 0; i < choice->cases()->size(); ++i) {
        around.cases.emplace_back(choice, i);
        collect(*choice->cases()->Get(i)->blocks(), around);
        around.cases.pop_back();
      }
    }
  }
}

namespace {

ByteRange rangeOf(const Plan &plan, uint32_t tensor, const LoopNest &loops) {
  const std::vector<runtime::ByteStep> shifts = runtime::shiftsOf(tensor, loops);
  return *runtime::byteRange(*plan.tensors()->Get(tensor), shifts);
}

bool overwrites(const Arg &arg) { return arg.access() == Access::write; }

} // namespace

/// Whether tensor `b`, in its loops, has bytes of the range, which is that of tensor `a`.
bool StepFlow::meets(uint32_t a, const ByteRange &range, uint32_t b, const LoopNest &loops) const {
  const Tensor &one = *plan.tensors()->Get(a), &other = *plan.tensors()->Get(b);
  if (one.segment() != other.segment())
    return false;
  if (one.buffer() != 0 && other.buffer() != 0 && one.buffer() != other.buffer())
    return false;
  return runtime::overlap(range, rangeOf(plan, b, loops));
}

std::vector<uint32_t> StepFlow::readers(uint32_t node, uint32_t tensor) const {
  const ByteRange range = rangeOf(plan, tensor, list[node].loops);
  std::vector<uint32_t> found;
  // Whether the bytes are still what they were behind step i.
  const auto look = [&](uint32_t i) {
    if (list[i].excludes(list[node]))
      return true;
    const bool sure = list[i].isSureFor(list[node]);
    bool kept = true, reads = false;
    for (const Arg *arg : *list[i].step->args()) {
      if (!meets(tensor, range, arg->tensor(), list[i].loops))
        continue;
      reads |= !overwrites(*arg);
      kept &= !sure || arg->access() == Access::read ||
              !runtime::covers(rangeOf(plan, arg->tensor(), list[i].loops), range);
    }
    if (reads)
      found.push_back(i);
    return kept;
  };
  for (uint32_t i = node + 1; i < list.size(); ++i)
    if (!look(i))
      return found;
  for (uint32_t i = list[node].loopBegin; i < std::min(node, list[node].loopEnd); ++i)
    if (!look(i))
      return found;
  return found;
}

std::vector<uint32_t> StepFlow::writers(uint32_t node, uint32_t tensor) const {
  const ByteRange range = rangeOf(plan, tensor, list[node].loops);
  std::vector<uint32_t> found;
  const auto look = [&](uint32_t i) {
    if (list[i].excludes(list[node]))
      return true;
    const bool sure = list[i].isSureFor(list[node]);
    bool kept = true, writes = false;
    for (const Arg *arg : *list[i].step->args()) {
      if (arg->access() == Access::read || !meets(tensor, range, arg->tensor(), list[i].loops))
        continue;
      writes = true;
      kept &= !sure || !overwrites(*arg) ||
              !runtime::covers(rangeOf(plan, arg->tensor(), list[i].loops), range);
    }
    if (writes)
      found.push_back(i);
    return kept;
  };
  for (uint32_t i = node; i-- > 0;)
    if (!look(i))
      return found;
  for (uint32_t i = list[node].loopEnd; i-- > node + 1;)
    if (!look(i))
      return found;
  return found;
}

bool StepFlow::outlives(uint32_t tensor) const {
  if (plan.tensors()->Get(tensor)->segment() == SegmentKind::persistent)
    return true;
  const ByteRange range = rangeOf(plan, tensor, {});
  return std::ranges::any_of(*program.outputs(), [&](const Output *output) {
    return meets(tensor, range, output->tensor(), {});
  });
}

} // namespace hydra::report
