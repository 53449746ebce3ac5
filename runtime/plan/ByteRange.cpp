// Strided byte sets, reduced to one interval and at most one pitch.
#include "runtime/plan/ByteRange.h"

#include "runtime/plan/PlanFile.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hydra::runtime {

namespace {

// Products of two bounded 48-bit numbers and an element size do not fit into 64 bits.
__extension__ typedef __int128 Wide;

/// Where the bytes of `range` lie within each `pitch` bytes. Nothing when they do not fit between
/// two multiples of it.
struct Columns {
  uint64_t begin;
  uint64_t end;
};
std::optional<Columns> columnsOf(const ByteRange &range, uint64_t pitch) {
  const uint64_t begin = range.begin % pitch;
  const uint64_t width = range.pitch == 0 ? range.end - range.begin : range.width;
  if (width > pitch - begin)
    return std::nullopt;
  return Columns{begin, begin + width};
}

/// Sets pitch, width and exact from steps sorted by increasing distance.
void findPitch(ByteRange &range, uint64_t elementSize, std::span<const ByteStep> steps) {
  uint64_t run = elementSize;
  size_t next = 0;
  while (next < steps.size() && static_cast<uint64_t>(steps[next].bytes) <= run) {
    run += (steps[next].count - 1) * steps[next].bytes;
    ++next;
  }
  if (next == steps.size())
    return;
  range.pitch = steps[next].bytes;
  range.width = run;
  uint64_t rows = steps[next].count * range.pitch;
  for (const ByteStep &outer : steps.subspan(next + 1)) {
    const uint64_t distance = outer.bytes;
    if (distance % range.pitch != 0) {
      range.pitch = range.width = 0;
      range.exact = false;
      return;
    }
    range.exact &= distance <= rows;
    rows += (outer.count - 1) * distance;
  }
  if (!columnsOf(range, range.pitch)) {
    range.pitch = range.width = 0;
    range.exact = false;
  }
}

} // namespace

bool isDense(const planfile::Tensor &tensor) {
  int64_t elements = 1;
  for (flatbuffers::uoffset_t d = tensor.shape()->size(); d-- > 0; elements *= tensor.shape()->Get(d))
    if (tensor.shape()->Get(d) != 1 && tensor.strides()->Get(d) != elements)
      return false;
  return true;
}

uint64_t elementSize(const planfile::Tensor &tensor) { return support::byteSize(dtypeOf(tensor)); }

std::optional<ByteRange> byteRange(const planfile::Tensor &tensor,
                                   std::span<const ByteStep> loops) {
  const uint64_t size = elementSize(tensor);
  std::vector<ByteStep> steps;
  Wide begin = tensor.offset();
  Wide end = begin + size;
  const auto add = [&](uint64_t count, Wide bytes) {
    if (count <= 1 || bytes == 0)
      return;
    const Wide reach = static_cast<Wide>(count - 1) * bytes;
    (bytes < 0 ? begin : end) += reach;
    // A distance that does not fit leaves the segment as well, which the last check reports.
    steps.push_back({count, static_cast<int64_t>(bytes < 0 ? -bytes : bytes)});
  };
  for (flatbuffers::uoffset_t i = 0; i < tensor.shape()->size(); ++i)
    add(tensor.shape()->Get(i), static_cast<Wide>(tensor.strides()->Get(i)) * size);
  for (const ByteStep &loop : loops)
    add(loop.count, loop.bytes);
  if (begin < 0 || end > INT64_MAX)
    return std::nullopt;

  ByteRange range{static_cast<uint64_t>(begin), static_cast<uint64_t>(end)};
  std::sort(steps.begin(), steps.end(),
            [](const ByteStep &a, const ByteStep &b) { return a.bytes < b.bytes; });
  findPitch(range, size, steps);
  return range;
}

bool overlap(const ByteRange &a, const ByteRange &b) {
  if (a.end <= b.begin || b.end <= a.begin)
    return false;
  const uint64_t pitch = std::gcd(a.pitch, b.pitch);
  if (pitch == 0)
    return true;
  const auto columnsA = columnsOf(a, pitch);
  const auto columnsB = columnsOf(b, pitch);
  return !columnsA || !columnsB ||
         (columnsA->begin < columnsB->end && columnsB->begin < columnsA->end);
}

bool covers(const ByteRange &a, const ByteRange &b) {
  if (!a.exact)
    return false;
  if (a.pitch == 0)
    return true;
  if (a.pitch != b.pitch)
    return false;
  const auto columnsA = columnsOf(a, a.pitch);
  const auto columnsB = columnsOf(b, b.pitch);
  return columnsA && columnsB && columnsA->begin <= columnsB->begin &&
         columnsB->end <= columnsA->end;
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
