// How a plan's batched matmuls are taken by libraries, for passes that choose where results lie.
#pragma once

#include "runtime/support/MergedBatch.h"

#include "llvm/ADT/ArrayRef.h"

namespace hydra::plan {

/// How many matmuls of a batch are one call, by the strides of both operands and the result along
/// its dimensions, in elements.
inline int64_t matmulsAtOnce(llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> a,
                             llvm::ArrayRef<int64_t> b, llvm::ArrayRef<int64_t> c) {
  return support::mergeBatch(batch, {a, b, c}).count;
}

} // namespace hydra::plan
