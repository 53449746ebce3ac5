// Loads and stores of the elements of a tensor for 16 neighbouring columns, however they lie.
#pragma once

#include "compiler/codegen/rows/Loops.h"
#include "compiler/codegen/rows/RowSchedule.h"
#include "compiler/codegen/rows/VectorMath.h"

namespace hydra::cpu {

using namespace rows;

/// Sixteen neighbouring columns.
struct Chunk {
  llvm::Value *column;         ///< i64: of lane 0
  llvm::Value *mask = nullptr; ///< lanes that exist; null: all
};

class TensorMemory {
public:
  /// `positions`: an upper bound of all column numbers.
  TensorMemory(llvm::IRBuilderBase &builder, int64_t positions)
      : b(builder), math(builder), wide(positions > INT32_MAX) {}

  /// The address of an element further on.
  llvm::Value *elementPointer(llvm::Value *base, RowType type, llvm::Value *offset) {
    return b.CreateGEP(math.memoryType(type), base, offset);
  }
  /// The offset of the element at a row-major position (i64, or a vector of integers).
  llvm::Value *offsetOf(const Strided &strided, llvm::Value *position);

  llvm::Value *loadOne(llvm::Value *pointer, RowType type);
  void storeOne(llvm::Value *value, llvm::Value *pointer, RowType type);

  /// `row`: the address of column 0. Lanes that do not exist give zeros.
  llvm::Value *load(llvm::Value *row, const TensorAccess &access, RowType type, const Chunk &chunk);
  /// `stream`: past the caches, to an aligned vector.
  void store(llvm::Value *value, llvm::Value *row, const TensorAccess &access, RowType type,
             const Chunk &chunk, bool stream = false);
  /// The elements in any columns, a vector of integers.
  llvm::Value *loadLanes(llvm::Value *row, const TensorAccess &access, RowType type,
                         llvm::Value *columns, llvm::Value *mask);
  /// Consecutive elements of memory.
  llvm::Value *loadVector(llvm::Value *pointer, RowType type, llvm::Value *mask);
  void storeVector(llvm::Value *value, llvm::Value *pointer, RowType type, llvm::Value *mask,
                   bool stream = false);

  /// The column of each lane: integers of 32 bits where these suffice.
  llvm::Value *laneColumns(const Chunk &chunk);
  llvm::Value *splat(llvm::Value *scalar) { return b.CreateVectorSplat(kLanes, scalar); }
  /// A mask of the first `count` lanes.
  llvm::Value *firstLanes(int64_t count);
  llvm::Value *firstLanes(llvm::Value *count);

private:
  llvm::VectorType *vectorOf(llvm::Type *element) {
    return llvm::FixedVectorType::get(element, kLanes);
  }
  llvm::Value *allLanes() { return llvm::Constant::getAllOnesValue(vectorOf(b.getInt1Ty())); }
  llvm::Value *lanePointers(llvm::Value *row, const TensorAccess &access, RowType type,
                            llvm::Value *columns);
  llvm::Align alignOf(RowType type) { return llvm::Align(storageBytes(type)); }

  llvm::IRBuilderBase &b;
  VectorMath math;
  bool wide;
};

} // namespace hydra::cpu
