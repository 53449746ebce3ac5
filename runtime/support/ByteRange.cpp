// Strided byte sets, reduced to one interval and at most one pitch.
#include "runtime/support/ByteRange.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hydra::support {

namespace {

// Products of two bounded 48-bit numbers and an element size do not fit into 64 bits.
__extension__ typedef __int128 Wide;

/// The bytes that a range has in a row.
uint64_t runOf(const ByteRange &range) {
  return range.pitch == 0 ? range.end - range.begin : range.width;
}

/// How far behind the beginning of a's columns those of b begin, within a pitch of both.
uint64_t distance(const ByteRange &a, const ByteRange &b, uint64_t pitch) {
  return (b.begin % pitch + pitch - a.begin % pitch) % pitch;
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
}

} // namespace

std::optional<ByteRange> repeatedBytes(int64_t first, uint64_t size,
                                       std::span<const ByteStep> repeated) {
  std::vector<ByteStep> steps;
  Wide begin = first;
  Wide end = begin + size;
  for (const ByteStep &step : repeated) {
    if (step.count <= 1 || step.bytes == 0)
      continue;
    const Wide reach = static_cast<Wide>(step.count - 1) * step.bytes;
    (step.bytes < 0 ? begin : end) += reach;
    const Wide apart = step.bytes;
    steps.push_back({step.count, static_cast<int64_t>(apart < 0 ? -apart : apart)});
  }
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
  // Columns that reach over a multiple of the pitch go on at the next one.
  const uint64_t between = distance(a, b, pitch);
  return between < runOf(a) || pitch - between < runOf(b);
}

bool covers(const ByteRange &a, const ByteRange &b) {
  if (!a.exact)
    return false;
  if (a.pitch == 0)
    return true;
  return a.pitch == b.pitch && distance(a, b, a.pitch) + runOf(b) <= runOf(a);
}

} // namespace hydra::support
