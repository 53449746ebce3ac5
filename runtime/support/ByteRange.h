// Strided sets of bytes, as parts of tensors are, and whether two share any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace hydra::support {

/// Something repeated `count` times, each time `bytes` further on.
struct ByteStep {
  uint64_t count;
  int64_t bytes;
};

/// Bytes [begin, end), or a superset of what is really touched. With a pitch, only the first
/// `width` bytes of every `pitch` bytes from `begin` on are meant, as in a slice of the columns of
/// a matrix.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t pitch = 0; // 0: all bytes
  uint64_t width = 0;
  bool exact = true; // no superset
};

/// `size` bytes from `begin` on, repeated by all steps. Nothing when they leave [0, 2^63).
std::optional<ByteRange> repeatedBytes(int64_t begin, uint64_t size,
                                       std::span<const ByteStep> steps);

/// False only if no byte is in both.
bool overlap(const ByteRange &a, const ByteRange &b);

/// True only if every byte of `b` that lies between a.begin and a.end is in `a`.
bool covers(const ByteRange &a, const ByteRange &b);

} // namespace hydra::support
