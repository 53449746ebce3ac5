// Which dimensions of a batch of matmuls a library takes at once: it knows one size, and one
// distance from matrix to matrix of each operand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hydra::support {

/// The innermost dimensions of a batch that merge: `count` matmuls, `strides` elements apart in the
/// first operand, the second and the result. The first `outer` dimensions are left.
struct MergedBatch {
  size_t outer = 0;
  int64_t count = 1;
  std::array<int64_t, 3> strides{};
};

/// `sizes`: of the batch's dimensions; `strides`: of each matrix along them, in elements. A
/// dimension of size 1 has no stride, and merges with any.
inline MergedBatch mergeBatch(std::span<const int64_t> sizes,
                              const std::array<std::span<const int64_t>, 3> &strides) {
  MergedBatch merged{.outer = sizes.size()};
  for (; merged.outer > 0; --merged.outer) {
    const size_t d = merged.outer - 1;
    if (sizes[d] == 1)
      continue;
    if (merged.count == 1)
      merged.strides = {strides[0][d], strides[1][d], strides[2][d]};
    else
      for (size_t i = 0; i < strides.size(); ++i)
        if (strides[i][d] != merged.strides[i] * merged.count)
          return merged;
    merged.count *= sizes[d];
  }
  return merged;
}

} // namespace hydra::support
