// Which bytes of a segment a tensor covers, and whether two tensors share any.
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/support/ByteRange.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace hydra::runtime {

using support::ByteRange;
using support::ByteStep;
using support::covers;
using support::overlap;

/// The bytes of a tensor that the enclosing loops shift, over all their iterations. Nothing when
/// they leave [0, 2^63). The tensor's shape, strides and dtype must be valid (PlanVerifier.h).
std::optional<ByteRange> byteRange(const planfile::Tensor &tensor, std::span<const ByteStep> loops);

/// Whether the elements of a tensor lie in row-major order without gaps.
bool isDense(const planfile::Tensor &tensor);

/// Bytes of one element.
uint64_t elementSize(const planfile::Tensor &tensor);

/// The positions in `ranges`, in increasing order, of two that overlap.
std::optional<std::pair<size_t, size_t>> findOverlap(std::span<const ByteRange> ranges);

} // namespace hydra::runtime
