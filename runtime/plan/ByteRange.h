// Which bytes of a segment a tensor covers, and whether two tensors share any.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace hydra::runtime {

/// Something repeated `count` times, each time `bytes` further on.
struct ByteStep {
  uint64_t count;
  int64_t bytes;
};

/// Bytes [begin, end) of a segment, or a superset of what a tensor really touches. With a pitch,
/// only the first `width` bytes of every `pitch` bytes from `begin` on are meant, as in a slice of
/// the columns of a matrix.
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t pitch = 0; // 0: all bytes
  uint64_t width = 0;
  bool exact = true; // no superset
};

/// The bytes of a tensor that the enclosing loops shift, over all their iterations. Nothing when
/// they leave [0, 2^63). The tensor's shape, strides and dtype must be valid (PlanVerifier.h).
std::optional<ByteRange> byteRange(const planfile::Tensor &tensor, std::span<const ByteStep> loops);

/// Whether the elements of a tensor lie in row-major order without gaps.
bool isDense(const planfile::Tensor &tensor);

/// Bytes of one element.
uint64_t elementSize(const planfile::Tensor &tensor);

/// False only if no byte is in both.
bool overlap(const ByteRange &a, const ByteRange &b);

/// True only if every byte of `b` that lies between a.begin and a.end is in `a`.
bool covers(const ByteRange &a, const ByteRange &b);

/// The positions in `ranges`, in increasing order, of two that overlap.
std::optional<std::pair<size_t, size_t>> findOverlap(std::span<const ByteRange> ranges);

} // namespace hydra::runtime
