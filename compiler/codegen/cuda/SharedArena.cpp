// First fit in a block's shared memory.
#include "compiler/codegen/cuda/SharedArena.h"

#include "runtime/support/Integers.h"

#include <algorithm>

namespace hydra::cuda {

std::optional<int64_t> SharedArena::place(int64_t size, int64_t first, int64_t last) {
  int64_t begin = 0;
  for (const Range &other : ranges)
    if (other.first <= last && first <= other.last && begin < other.end &&
        other.begin < begin + size)
      begin = support::roundUp(other.end, kAlignment);
  if (begin + size > capacity)
    return std::nullopt;
  const Range range{begin, begin + size, first, last};
  ranges.insert(std::ranges::upper_bound(ranges, begin, {}, &Range::begin), range);
  end = std::max(end, range.end);
  return begin;
}

} // namespace hydra::cuda
