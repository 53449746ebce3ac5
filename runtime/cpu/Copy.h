// Copies between layouts of one shape; a fill is a copy of one element.
#pragma once

#include "runtime/cpu/ThreadPool.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hydra::runtime {

/// A copy between two layouts of one shape, reduced to as few dimensions as possible.
///
/// Traffic: each byte once read and once written. Limit: memory; where neither layout has a dense
/// dimension in common (a transposition), tiles of 16 x 16 elements use whole cache lines of both.
/// Layout: any strides. Assumes that source and target do not overlap.
class StridedCopy {
public:
  /// Strides in elements of `elementSize` bytes: 1, 2, 4 or 8. A source stride may be 0.
  StridedCopy(std::vector<int64_t> sizes, const std::vector<int64_t> &targetStrides,
              const std::vector<int64_t> &sourceStrides, size_t elementSize);

  void run(void *target, const void *source, ThreadPool &pool) const;

private:
  /// One dimension; strides in bytes.
  struct Dim {
    int64_t size, target, source;
  };

  template <typename T>
  void copyBlock(char *target, const char *source, int64_t rowCount, int64_t columnCount) const;

  size_t elementSize;
  std::vector<Dim> outer;  // all but two dimensions, outermost first
  Dim rows{1, 0, 0};       // where the source is densest
  Dim columns{1, 0, 0};    // where the target is densest
  int64_t rowsPerTask = 1; // tasks of about 64 KiB
  int64_t columnsPerTask = 1;
};

} // namespace hydra::runtime
