// Prefix scans become loops, or are written out, while they are bound: part of hydra-bind.
#pragma once

#include "passes/bind/ScanBodies.h"

namespace hydra {

/// Writes one `hydra.prefix_scan`, whose body combines many pairs of rows at a time. "Values" are
/// flat: those that its sequences hold, rows along its axis.
class PrefixScanWriter {
public:
  /// From so many rows on it may become loops.
  PrefixScanWriter(PrefixScanOp scan, ScanBodies &bodies, int64_t loopsFrom)
      : scan(scan), bodies(bodies), loopsFrom(loopsFrom) {}

  /// Replaces it; reports what does not fit.
  llvm::LogicalResult write();
  /// Replaces it by the scan of one chunk that it is to a program that reads on: its rows, each
  /// combined with what earlier calls combined.
  llvm::LogicalResult writeContinued();

private:
  using Values = llvm::SmallVector<mlir::Value>;

  /// The values of the sequences, whose axis is then known.
  llvm::FailureOr<Values> readSequences();
  int64_t rowsOf(llvm::ArrayRef<mlir::Value> values) const;

  /// Whether loops combine the rows: there are enough of them, combined number by number and all of
  /// one size, so that a loop's iteration is one small step, and on GPUs a lane for each number
  /// runs all of them. Nothing is left of what finds that out.
  llvm::FailureOr<bool> wantsLoops(llvm::ArrayRef<mlir::Value> values);

  /// All rows combined with those 1, 2, 4, ... before (Hillis and Steele, "Data Parallel
  /// Algorithms", 1986): each time what a row stands for begins twice as far back.
  llvm::FailureOr<Values> combineRows(Values values);
  /// The same, by loops from row to row: within chunks, over what chunks combine to, and both
  /// combined (Blelloch, "Prefix Sums and Their Applications", 1990).
  llvm::FailureOr<Values> combineByLoops(llvm::ArrayRef<mlir::Value> values);
  /// The same of values that are divided into chunks: the axis and the next one are for chunks and
  /// for their rows. The result has one axis for both.
  llvm::FailureOr<Values> combineChunks(llvm::ArrayRef<mlir::Value> values);
  /// The rows of each such chunk by itself: an iteration has a row of every chunk.
  llvm::FailureOr<Values> combineInChunks(llvm::ArrayRef<mlir::Value> values);

  /// Rows combined with as many before them, checked.
  llvm::FailureOr<Values> combine(llvm::ArrayRef<mlir::Value> before,
                                  llvm::ArrayRef<mlir::Value> here);
  /// The arguments of the body, to values like the sequences.
  mlir::IRMapping argumentsOf(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> before,
                              llvm::ArrayRef<mlir::Value> here);
  /// What is combined must be like the values.
  llvm::LogicalResult checkCombined(mlir::ValueRange combined, llvm::ArrayRef<mlir::Value> like);
  /// Replaces the scan by what it gives.
  void replace(llvm::ArrayRef<mlir::Value> values);
  /// Values, or bundles of them, like the sequences.
  llvm::SmallVector<mlir::Value> likeSequences(mlir::OpBuilder &b,
                                               llvm::ArrayRef<mlir::Value> values);

  PrefixScanOp scan;
  ScanBodies &bodies;
  int64_t loopsFrom, axis = 0;
};

} // namespace hydra
