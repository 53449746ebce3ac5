// Turns a group of row-wise operations into a CUDA kernel in LLVM IR:
//
//   void symbol(ptr input…, ptr result…, ptr partial sums…, ptr count)
//
// (the last where a number of rows on the device says which rows there are) with arguments in the
// order of a plan's launches, or a table of several such lists. The graph of numbers is evaluated
// by every thread for the elements it owns; three shapes:
//
//   flat   no value depends on a row: a thread owns 4 (or 8) neighbouring elements of the tensor
//   tiles  rows, but nothing is reduced: a thread owns neighbouring columns of one row
//   rows   a team of threads (of a warp, a warp or a block) per row; reductions by shuffles, then
//          through shared memory. Where a row fits into its registers, or what is read again of it
//          into shared memory, it is read once; longer rows are read again for each reduction.
//
// A group that sums over rows gives each block the rows of one grain; it leaves one row of partial
// sums in f32. All trees depend on the shape alone. A kernel that is counted has as many blocks as
// the device has room for, which take rows in turn up to the last one: without any it ends at once.
//
// Limits: memory bandwidth; 16-byte accesses wherever strides and addresses allow.
#pragma once

#include "compiler/codegen/rows/RowProgram.h"

#include "llvm/IR/Function.h"

namespace hydra::cuda {

using Strides = llvm::SmallVector<int64_t>;

/// Blocks and threads of a launch, in one dimension.
struct LaunchShape {
  int64_t blocks = 1, threads = 1;
  int64_t sharedBytes = 0; ///< of a block, that the launch asks for
  int64_t minBlocks = 0;   ///< that a multiprocessor is to have room for; 0: any number
};

/// Of a block of a generated kernel; powers of two.
struct RowThreads {
  int64_t ofShortRows = 128; ///< where a warp or less has a row: as many rows as these make
  int64_t ofHeldRow = 512;   ///< of a row that does not fit into registers, but shared memory
  int64_t ofLongRow = 256;   ///< of a longer one
  int64_t heldBytes = 0;     ///< of such a row at most: two have room on a multiprocessor
  int64_t atOnce = 0; ///< of all blocks, any number: what the device has room for; 0: unknown
};

/// Writes the body. `layouts`: of inputs, then of results that are not sums over rows;
/// `alignments`: bytes by which every launch aligns these. `grain`: rows of a block that leaves
/// partial sums. `counted`: the last argument is an i32 in memory; there are that times so many
/// rows, at most those of the program, which then sums over none. 0: there are all.
LaunchShape emitRowKernel(llvm::Function *function, const RowProgram &program,
                          llvm::ArrayRef<Strides> layouts, llvm::ArrayRef<int64_t> alignments,
                          int64_t grain, int64_t counted, const RowThreads &threads);

/// The kernel (partial sums, result) that adds `parts` partial sums for each element.
LaunchShape emitCombine(llvm::Function *function, int64_t parts, llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<int64_t> strides, RowType type);

/// Number of arguments of the kernel of a program, without a count of rows.
unsigned argumentCount(const RowProgram &program);

} // namespace hydra::cuda
