// Index arithmetic for the reference evaluations.
#pragma once

#include "dialects/hydra/Interfaces.h"

namespace hydra {

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))).
double geluOf(double x);

/// Row-major strides of a dense tensor, in elements.
inline llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Visits all indices of `shape` in row-major order.
template <typename Visit> void forEachIndex(llvm::ArrayRef<int64_t> shape, Visit visit) {
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t n = RefTensor::elements(shape); n > 0; --n) {
    visit(llvm::ArrayRef<int64_t>(index));
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i])
        break;
      index[i] = 0;
    }
  }
}

/// The position of an index under strides.
inline int64_t at(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> strides) {
  int64_t position = 0;
  for (size_t i = 0; i < index.size(); ++i)
    position += index[i] * strides[i];
  return position;
}

/// Copies the part of a tensor that begins at `start` along an axis, out of it or into it. Along
/// other axes the two are as long.
void takePiece(const RefTensor &whole, RefTensor &part, int64_t axis, int64_t start);
void putPiece(RefTensor &whole, const RefTensor &part, int64_t axis, int64_t start);

/// The numbers [rows, columns] that bytes [rows, columns / 2] of two numbers each and scales of
/// groups [rows, columns / support::kInt4Group] stand for.
RefTensor unpackedInt4(const RefTensor &bytes, const RefTensor &scales);

} // namespace hydra
