// How a group runs, before any instruction: its loops, what each sweep over a row computes, and
// where the elements of every tensor lie as these loops see them. On a GPU threads share them out.
//
// A group runs in one of two shapes:
//
//   rows    for each row: sweep 0 over the columns, row values, sweep 1, …; a sweep ends where a
//           reduction needs all columns; everything is stored by the last
//   flat    no value depends on a whole row, and the elements lie densely (or rows are one element
//           wide): one sweep over the elements of a grain, across row borders
//
// What an earlier sweep computed is computed again if that is cheap or the row is long; else it is
// kept in a buffer of one row on the stack.
#pragma once

#include "compiler/codegen/rows/RowProgram.h"

namespace hydra::rows {

/// Floats in a vector, on every target: 512 bits, or twice 256. One number, so that reductions
/// associate alike and give the same bits on every target.
constexpr int64_t kLanes = 16;
/// Partial results of a reduction over columns: chunk i of 16 columns adds to number i mod 4.
constexpr int64_t kAccumulators = 4;

/// Where elements lie, in elements. Dimensions that could be merged are.
struct Strided {
  struct Dim {
    int64_t size, stride;
  };
  llvm::SmallVector<Dim, 4> dims; ///< row-major, none of size 1

  void add(int64_t size, int64_t stride);
  int64_t lastOffset() const;
};

/// How 16 neighbouring columns lie.
enum class Pattern {
  Dense,     ///< next to each other
  Same,      ///< one element for all columns
  Blocks,    ///< within one block of a multiple of 16: next to each other or the same
  Scattered, ///< anyhow
};

struct TensorAccess {
  Strided rows;    ///< by row; empty in the flat shape
  Strided columns; ///< by column; in the flat shape by element
  Pattern pattern = Pattern::Dense;
};

/// A tensor whose elements are columns, in row-major order.
TensorAccess accessOf(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

/// One pass over the columns of a row.
struct Sweep {
  std::vector<unsigned> rowNodes;   ///< values of the row to compute before it
  std::vector<unsigned> reductions; ///< to do in it: nodes Reduce
  std::vector<unsigned> keeps;      ///< nodes that it stores to their row buffer
  std::vector<bool> reads;          ///< by node: taken from the row buffer
  unsigned cost = 0;                ///< rough number of instructions for a chunk
  bool prefetches = false;          ///< meanwhile fetches the inputs of the next row
};

struct RowSchedule {
  RowProgram program; ///< in the flat shape no node is a Row or Column
  bool flat = false;
  int64_t rows = 1;    ///< of the domain
  int64_t columns = 1; ///< of the domain
  std::vector<TensorAccess> inputs, results;
  std::vector<unsigned> level; ///< by node: number of reductions that must come before
  std::vector<Sweep> sweeps;
  std::vector<int> buffer;   ///< by node: its row buffer, or -1
  std::vector<bool> streams; ///< by result: too large for the caches, and vectors can be aligned
  int buffers = 0;

  /// Whether the last sweep has anything to do over columns.
  bool lastSweepStores() const;
};

/// `layouts`: element strides of each input, then of each result that is not a sum over rows.
/// Grains begin at multiples of `grain` rows.
RowSchedule scheduleRows(RowProgram program, llvm::ArrayRef<llvm::SmallVector<int64_t>> layouts,
                         int64_t grain);

} // namespace hydra::rows
