// Matrices of i4: their bytes, of i8, have two numbers each, and groups of neighbours in a row a
// scale.
#pragma once

#include "runtime/support/Int4Groups.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace hydra {

/// Of the scales of a matrix [rows, columns] whose rows have whole groups.
inline llvm::SmallVector<int64_t> groupScaleShape(llvm::ArrayRef<int64_t> matrix) {
  return {matrix[0], matrix[1] / support::kInt4Group};
}

} // namespace hydra
