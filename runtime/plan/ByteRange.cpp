// Tensors of plans as strided sets of bytes.
#include "runtime/plan/ByteRange.h"

#include "runtime/plan/PlanFile.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace hydra::runtime {

bool isDense(const planfile::Tensor &tensor) {
  int64_t elements = 1;
  for (flatbuffers::uoffset_t d = tensor.shape()->size(); d-- > 0;
       elements *= tensor.shape()->Get(d))
    if (tensor.shape()->Get(d) != 1 && tensor.strides()->Get(d) != elements)
      return false;
  return true;
}

uint64_t elementSize(const planfile::Tensor &tensor) { return support::byteSize(dtypeOf(tensor)); }

std::optional<ByteRange> byteRange(const planfile::Tensor &tensor,
                                   std::span<const ByteStep> loops) {
  const uint64_t size = elementSize(tensor);
  std::vector<ByteStep> steps;
  for (flatbuffers::uoffset_t i = 0; i < tensor.shape()->size(); ++i) {
    if (tensor.shape()->Get(i) == 1) // whatever its stride is
      continue;
    int64_t bytes = 0;
    // A distance that does not fit leaves the segment as well.
    if (__builtin_mul_overflow(tensor.strides()->Get(i), static_cast<int64_t>(size), &bytes))
      return std::nullopt;
    steps.push_back({static_cast<uint64_t>(tensor.shape()->Get(i)), bytes});
  }
  steps.insert(steps.end(), loops.begin(), loops.end());
  if (tensor.offset() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return support::repeatedBytes(static_cast<int64_t>(tensor.offset()), size, steps);
}

std::optional<std::pair<size_t, size_t>> findOverlap(std::span<const ByteRange> ranges) {
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(ranges[a].begin, a) < std::pair(ranges[b].begin, b);
  });
  std::vector<size_t> open; // ranges that reach beyond the beginning of the current one
  for (const size_t current : order) {
    std::erase_if(open, [&](size_t i) { return ranges[i].end <= ranges[current].begin; });
    for (const size_t i : open)
      if (overlap(ranges[i], ranges[current]))
        return std::minmax(i, current);
    open.push_back(current);
  }
  return std::nullopt;
}

} // namespace hydra::runtime
