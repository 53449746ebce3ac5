// Merges dimensions at construction; copies planes of two dimensions by memcpy or in blocks.
#include "runtime/cpu/Copy.h"

#include "runtime/support/Integers.h"

#include <algorithm>
#include <cstring>

using namespace hydra::runtime;
using hydra::support::ceilDiv;

StridedCopy::StridedCopy(std::vector<int64_t> sizes, const std::vector<int64_t> &targetStrides,
                         const std::vector<int64_t> &sourceStrides, size_t elementSize)
    : elementSize(elementSize) {
  const auto bytes = static_cast<int64_t>(elementSize);
  std::vector<Dim> dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1)
      dims.push_back({sizes[d], targetStrides[d] * bytes, sourceStrides[d] * bytes});
  std::sort(dims.begin(), dims.end(), [](const Dim &a, const Dim &b) {
    return a.target != b.target ? a.target > b.target : a.source > b.source;
  });
  for (size_t d = dims.size(); d-- > 1;) {
    Dim &outerDim = dims[d - 1];
    const Dim &inner = dims[d];
    if (outerDim.target != inner.size * inner.target ||
        outerDim.source != inner.size * inner.source)
      continue;
    outerDim = {outerDim.size * inner.size, inner.target, inner.source};
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(d));
  }
  if (!dims.empty()) {
    columns = dims.back();
    dims.pop_back();
  }
  const auto densest = std::min_element(
      dims.begin(), dims.end(), [](const Dim &a, const Dim &b) { return a.source < b.source; });
  if (densest != dims.end()) {
    rows = *densest;
    dims.erase(densest);
  }
  outer = dims;
  constexpr int64_t taskElements = 16384;
  // Tasks of rows and columns alike when there is nothing dense to stream along.
  const bool streams = columns.source == bytes || columns.source == 0;
  columnsPerTask = std::min<int64_t>(columns.size, streams ? taskElements : 128);
  rowsPerTask = std::min(rows.size, ceilDiv(taskElements, columnsPerTask));
}

template <typename T>
void StridedCopy::copyBlock(char *target, const char *source, int64_t rowCount,
                            int64_t columnCount) const {
  constexpr auto dense = static_cast<int64_t>(sizeof(T));
  if (columns.target == dense && (columns.source == dense || columns.source == 0)) {
    for (int64_t r = 0; r < rowCount; ++r) {
      char *to = target + r * rows.target;
      const char *from = source + r * rows.source;
      if (columns.source == 0)
        std::fill_n(reinterpret_cast<T *>(to), columnCount, *reinterpret_cast<const T *>(from));
      else
        std::memcpy(to, from, static_cast<size_t>(columnCount) * sizeof(T));
    }
    return;
  }
  // By way of a small tile, each line of either side is read or written in one go: with strides of
  // a power of two, lines do not stay in the cache. Tiles of 32 or 64 are slower where memory is
  // the limit (measured 2.3 and 3.6 against 6 GB/s at 4096 x 4096): too many streams at a time.
  constexpr int64_t side = 16;
  T tile[side][side];
  for (int64_t r0 = 0; r0 < rowCount; r0 += side) {
    for (int64_t c0 = 0; c0 < columnCount; c0 += side) {
      const int64_t tileRows = std::min(side, rowCount - r0);
      const int64_t tileColumns = std::min(side, columnCount - c0);
      const char *from = source + r0 * rows.source + c0 * columns.source;
      for (int64_t c = 0; c < tileColumns; ++c)
        for (int64_t r = 0; r < tileRows; ++r)
          tile[c][r] = *reinterpret_cast<const T *>(from + r * rows.source + c * columns.source);
      char *to = target + r0 * rows.target + c0 * columns.target;
      for (int64_t r = 0; r < tileRows; ++r)
        for (int64_t c = 0; c < tileColumns; ++c)
          *reinterpret_cast<T *>(to + r * rows.target + c * columns.target) = tile[c][r];
    }
  }
}

void StridedCopy::run(void *target, const void *source, ThreadPool &pool) const {
  const int64_t rowTasks = ceilDiv(rows.size, rowsPerTask);
  const int64_t columnTasks = ceilDiv(columns.size, columnsPerTask);
  int64_t planes = 1;
  for (const Dim &dim : outer)
    planes *= dim.size;
  pool.parallelFor(planes * rowTasks * columnTasks, [&](int64_t task, unsigned) {
    const int64_t column = task % columnTasks * columnsPerTask;
    const int64_t row = task / columnTasks % rowTasks * rowsPerTask;
    int64_t plane = task / (columnTasks * rowTasks);
    auto *to = static_cast<char *>(target) + row * rows.target + column * columns.target;
    const auto *from =
        static_cast<const char *>(source) + row * rows.source + column * columns.source;
    for (size_t d = outer.size(); d-- > 0; plane /= outer[d].size) {
      to += plane % outer[d].size * outer[d].target;
      from += plane % outer[d].size * outer[d].source;
    }
    const int64_t rowCount = std::min(rowsPerTask, rows.size - row);
    const int64_t columnCount = std::min(columnsPerTask, columns.size - column);
    switch (elementSize) {
    case 1:
      return copyBlock<uint8_t>(to, from, rowCount, columnCount);
    case 2:
      return copyBlock<uint16_t>(to, from, rowCount, columnCount);
    case 4:
      return copyBlock<uint32_t>(to, from, rowCount, columnCount);
    default:
      return copyBlock<uint64_t>(to, from, rowCount, columnCount);
    }
  });
}
