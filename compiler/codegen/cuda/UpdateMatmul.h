// Which gradients of matrices, and other sums of matmuls, are used where they are summed, and how
// that is cut into blocks.
#pragma once

#include "compiler/codegen/rows/RowProgram.h"

#include "dialects/hydra/Roofline.h"
#include "dialects/hydra/Target.h"
#include "dialects/plan/Plan.h"

#include <optional>

namespace hydra::cuda {

/// A gradient and the groups that use it, which are one and the same for each of its parts.
struct Update {
  /// A launch that uses rows of the gradient, from `begin` on.
  struct Part {
    plan::LaunchOp launch;
    int64_t begin, rows;
  };

  RowProgram program;
  int64_t rows = 0, columns = 0, sums = 0;
  bool isOfBytes = false;      ///< operands have 8 bits
  RowType type = RowType::F32; ///< of what is summed: f32, or sums are rounded to bf16
  unsigned gradient = 0;       ///< among the inputs
  llvm::SmallVector<unsigned> reads,
      halves;                         ///< inputs: numbers of the domain, in f32 and in 16 bits
  llvm::SmallVector<unsigned> shared; ///< inputs: those that all share
  llvm::SmallVector<unsigned> wide, narrow, bytes; ///< results, in f32, and in 16 and 8 bits
  llvm::SmallVector<unsigned> whole;               ///< results: integers of 16 bits
  llvm::SmallVector<unsigned> most;                ///< results: the largest number of each row
  llvm::SmallVector<Part> parts;                   ///< by their rows

  /// Inputs and results in the order in which the kernel knows their matrices.
  llvm::SmallVector<unsigned> readInOrder() const;
  llvm::SmallVector<unsigned> writtenInOrder() const;
  /// Matrices whose pieces the copy engine brings; whose pieces it stores.
  size_t fetched() const { return reads.size() + halves.size(); }
  size_t stored() const { return wide.size() + narrow.size() + whole.size() + bytes.size(); }

  /// Numbers of which the group finds the largest: those of a row of it.
  int64_t run() const { return most.empty() ? 1 : program.domain.columns(); }
  int64_t runs() const { return most.empty() ? 0 : rows * columns / run(); }
  /// Of its kernel: operands and their scales, maps and counters, and what the group has.
  size_t arguments() const;
  /// Bytes that are read and written for each number of the matrix, what is found aside.
  int64_t moved() const;
};

/// The update that a matmul and all launches that use its sums are together; nothing where there
/// is no kernel for it.
std::optional<Update> updateOf(plan::MatmulOp op, llvm::ArrayRef<plan::LaunchOp> launches);

/// Elements from one row of `columns` neighbours to the next, if that is what a value is.
std::optional<int64_t> strideOfRows(mlir::Value value, int64_t columns);

/// How templates/update_hopper.cuh is launched.
struct UpdateTiles {
  /// Threads of a block, and columns of a tile. The sums of wider ones (160) and the arithmetic of
  /// AdamW do not both fit in registers.
  static constexpr int64_t kThreads = 384, kColumns = 128;

  int64_t blocks, count;             ///< of the grid, and tiles of the matrix
  int64_t stages, buffers;           ///< of operands, and of pieces of what the group has
  int64_t sharedBytes, scratchBytes; ///< of a block, and for the maps of all blocks

  /// Nothing where the target has no warpgroups, does not say how many multiprocessors it has, or
  /// has no memory for a ring and two buffers.
  static std::optional<UpdateTiles> of(const Update &update, TargetAttr target);

  /// Of the kernel at the target's rates.
  double seconds(const Update &update, plan::MatmulOp op, const Roofline &rates) const;

  /// The launch's plan::kExposedAttr, for times that reckon with the full rate of operands.
  static double exposedAtFullRate(const Update &update);
};

} // namespace hydra::cuda
