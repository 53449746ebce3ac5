// Who comes before whom in a program: what streams and events guarantee, and nothing more.
#pragma once

#include "dialects/plan/Plan.h"
#include "runtime/support/ByteRange.h"

namespace hydra::plan {

/// A use of bytes by a block of some list. Uses inside loops and switches count for the enclosing
/// block too.
struct BufferUse {
  mlir::Value value; ///< buffer or view
  bool writes = false;
};

/// Happens-before among the blocks of one list, by vector clocks over streams: linear in the
/// number of blocks times streams.
class ListOrder {
public:
  explicit ListOrder(mlir::Block &list);

  const std::vector<mlir::Operation *> &blocks() const { return operations; }
  /// Position in the list of the block that contains `op` (or is it); -1 if none does.
  int64_t positionOf(mlir::Operation *op) const;
  /// Whether block `a` surely ends before block `b` begins.
  bool before(int64_t a, int64_t b) const;
  /// Whether each block surely ends before the next one begins.
  bool isTotal() const;

private:
  mlir::Block &list;
  std::vector<mlir::Operation *> operations;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  std::vector<int64_t> streamOf, indexInStream;
  std::vector<llvm::SmallVector<int64_t, 4>> clocks; ///< per block: last index seen of each stream
};

/// All buffers that an operation (a step, or everything inside a loop or switch) uses.
llvm::SmallVector<BufferUse> usesOf(mlir::Operation *block);

/// The bytes of its buffer that a value names, or a superset of them.
support::ByteRange bytesOf(mlir::Value value);

/// The rule of every plan: two blocks of a list that touch the same bytes, one of them writing, are
/// ordered; and every awaited event was signalled before. Before offsets are known, bytes are the
/// same when the buffer is.
llvm::LogicalResult verifyOrder(ProgramOp program);

} // namespace hydra::plan
