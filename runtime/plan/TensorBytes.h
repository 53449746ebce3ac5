// How many elements and bytes a plan's tensor has, how they lie, and their way to dense rows.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace hydra::runtime {

int64_t elementsOf(std::span<const int64_t> shape);
int64_t elementsOf(const planfile::Tensor &tensor);
/// Bytes of its elements.
size_t denseBytes(const planfile::Tensor &tensor);
/// Bytes from its first element to the end of its last.
size_t extentBytes(const planfile::Tensor &tensor);
/// Throws Error unless `size` is denseBytes.
void checkSize(const planfile::Tensor &tensor, size_t size);
/// Throws Error unless it is dense and has bytes [begin, begin + size).
void checkRange(const planfile::Tensor &tensor, uint64_t begin, size_t size);
/// Between a tensor's own layout and dense rows, into the tensor or (not `in`) out of it.
void moveElements(const planfile::Tensor &tensor, std::byte *strided, std::byte *dense, bool in);

} // namespace hydra::runtime
