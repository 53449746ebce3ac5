// The rotation of rotary position embeddings inside a generated kernel.
//
// Pair i of a head is rotated by the angle a_i = position · base^(-2i/hd). With x' the other element
// of its pair, an element becomes  x cos a ∓ x' sin a  (- for the first of the pair). Once per row
// the cosines and signed sines of all columns of a head go to two small tables on the stack; all
// heads of the row then share them. Angles, range reduction and polynomials are in float64.
#pragma once

#include "compiler/codegen/cpu/TensorMemory.h"

namespace hydra::cpu {

class Rotary {
public:
  /// Reserves the tables in the entry block. `columns`: heads × `width`.
  Rotary(llvm::IRBuilderBase &builder, const Rotation &rotation, int64_t width, int64_t columns);

  /// Fills the tables for a row. `position`: null, or where it stands (float).
  void prepare(llvm::Value *row, llvm::Value *position);
  /// The rotated numbers of a chunk of a tensor.
  llvm::Value *rotate(llvm::Value *rowPointer, const TensorAccess &access, RowType type,
                      const Chunk &chunk);

private:
  llvm::Value *table(llvm::Value *base, llvm::Value *column);
  llvm::Value *partner(llvm::Value *rowPointer, const TensorAccess &access, RowType type,
                       const Chunk &chunk, llvm::Value *x);
  void storePairs(llvm::Value *pair, llvm::Value *cos, llvm::Value *sin);
  void repeat(llvm::Value *base);

  llvm::IRBuilderBase &b;
  VectorMath math;
  TensorMemory memory;
  Rotation rotation;
  int64_t width;
  llvm::Value *frequencies, *cosines, *sines;
};

} // namespace hydra::cpu
