// The complement of the inputs.
#include "runtime/plan/Poison.h"

#include "runtime/plan/ByteRange.h"

#include <algorithm>

using namespace hydra::planfile;

std::vector<std::pair<uint64_t, uint64_t>> hydra::runtime::unwrittenBytes(const Plan &plan,
                                                                          const Program &program) {
  std::vector<std::pair<uint64_t, uint64_t>> inputs;
  for (const Input *input : *program.inputs()) {
    const Tensor &tensor = *plan.tensors()->Get(input->tensor());
    if (tensor.segment() != SegmentKind::transient)
      continue;
    if (const auto range = byteRange(tensor, {}))
      inputs.emplace_back(range->begin, range->end);
  }
  std::ranges::sort(inputs);
  std::vector<std::pair<uint64_t, uint64_t>> unwritten;
  uint64_t begin = 0;
  const auto add = [&](uint64_t end) {
    if (begin < end)
      unwritten.emplace_back(begin, end);
  };
  for (const auto &[first, behind] : inputs) {
    add(first);
    begin = std::max(begin, behind);
  }
  add(plan.segments()->Get(static_cast<uint32_t>(SegmentKind::transient))->size());
  return unwritten;
}
