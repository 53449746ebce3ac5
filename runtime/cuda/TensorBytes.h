// How the elements of a plan's tensor lie, and their way to dense rows.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstddef>
#include <cstdint>

namespace hydra::runtime::cuda {

/// Bytes of its elements.
size_t denseBytes(const planfile::Tensor &entry);
/// Bytes from its first element to the end of its last.
size_t extentBytes(const planfile::Tensor &entry);
/// Throws Error unless `size` is denseBytes.
void checkSize(const planfile::Tensor &entry, size_t size);
/// Throws Error unless it is dense and has bytes [begin, begin + size).
void checkRange(const planfile::Tensor &entry, uint64_t begin, size_t size);
/// Between a tensor's own layout and dense rows, into the tensor or (not `in`) out of it.
void moveElements(const planfile::Tensor &entry, std::byte *strided, std::byte *dense, bool in);

} // namespace hydra::runtime::cuda
