// Scans become loops, or are written out, while they are bound: part of hydra-bind.
#pragma once

#include "dialects/hydra/Expr.h"
#include "dialects/hydra/Hydra.h"

#include "mlir/IR/IRMapping.h"

#include <functional>

namespace hydra {

class ScanWriter {
public:
  /// Binds operations of a block in place.
  using BindOperations =
      std::function<llvm::LogicalResult(mlir::Block::iterator, mlir::Block::iterator)>;

  /// `environment` holds the symbols that `bind` goes by; each copy of a body has its own `rows`.
  ScanWriter(Environment &environment, BindOperations bind)
      : environment(environment), bind(std::move(bind)) {}

  /// A scan of that many whole chunks or more becomes a loop.
  int64_t loopsFrom = 0;
  /// The program reads on behind earlier calls: where scans begin and end is marked for
  /// hydra-cache.
  bool continued = false;

  /// Replaces a `hydra.scan` or `hydra.prefix_scan` whose operands are bound and whose body calls
  /// nothing; reports what does not fit, scans that would become more than a million operations,
  /// and scans in too many others.
  llvm::LogicalResult writeOut(mlir::Operation *scan);

private:
  /// A prefix scan as the scan of one chunk that it is to a program that reads on: its rows, each
  /// combined with what earlier calls combined.
  llvm::LogicalResult writeContinued(PrefixScanOp scan);
  /// Marks in front of a scan where it begins: what the mark gives of flat sequences and carried
  /// values.
  static llvm::SmallVector<mlir::Value> begin(mlir::Operation *scan, int64_t axis, int64_t chunk,
                                              mlir::ValueRange sequences, mlir::ValueRange carried);
  /// The same where it ends, of results and what is carried on.
  static llvm::SmallVector<mlir::Value> end(mlir::Operation *scan, int64_t axis,
                                            mlir::ValueRange results, mlir::ValueRange carried);
  /// All rows of flat sequences, combined with those 1, 2, 4, ... before (Hillis and Steele, "Data
  /// Parallel Algorithms", 1986): each time what a row stands for begins twice as far back.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>>
  combineRows(PrefixScanOp scan, llvm::SmallVector<mlir::Value> values, int64_t length);
  /// The same, by loops from row to row: within chunks, over what chunks combine to, and both
  /// combined (Blelloch, "Prefix Sums and Their Applications", 1990).
  llvm::FailureOr<llvm::SmallVector<mlir::Value>>
  combineByLoops(PrefixScanOp scan, llvm::SmallVector<mlir::Value> values, int64_t length);
  /// The rows of each chunk combined, of sequences with `axis` for chunks and the next one for
  /// their rows: an iteration has a row of every chunk.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>>
  combineInChunks(PrefixScanOp scan, llvm::ArrayRef<mlir::Value> values);
  /// Rows combined with one row, or as many, before them.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> combineWith(PrefixScanOp scan,
                                                              llvm::ArrayRef<mlir::Value> before,
                                                              llvm::ArrayRef<mlir::Value> here);
  /// Whether a prefix scan is one by loops: it combines enough rows, number by number and all of
  /// one size, so that a loop's iteration is one small step, and on GPUs a lane for each number
  /// runs all of them. Nothing is left of what finds that out.
  llvm::FailureOr<bool> wantsLoops(PrefixScanOp scan, llvm::ArrayRef<mlir::Value> values,
                                   int64_t length);
  /// What a combination must be like.
  static llvm::LogicalResult checkCombined(PrefixScanOp scan, mlir::ValueRange combined,
                                           llvm::ArrayRef<mlir::Value> like);
  /// Values, or bundles of them, like the sequences of a prefix scan.
  static llvm::SmallVector<mlir::Value> likeSequences(PrefixScanOp scan,
                                                      llvm::ArrayRef<mlir::Value> parts);
  /// The chunks of every joined value, and one chunk of each result that they make up, which may
  /// be a bundle.
  struct Joined {
    std::vector<llvm::SmallVector<mlir::Value>> parts;
    llvm::SmallVector<mlir::Value> likes;
  };

  /// A loop over the whole chunks, if they are many; the body once more for every other chunk.
  llvm::LogicalResult write(ScanOp scan);
  /// A loop over the first chunks, whose body becomes an entry.
  llvm::LogicalResult writeLoop(ScanOp scan, int64_t chunks, bool hasRest, Joined &joined,
                                llvm::SmallVectorImpl<mlir::Value> &carried);
  /// What a body yields must be like what the chunk before did, and what is carried.
  static llvm::LogicalResult checkYielded(ScanOp scan, mlir::ValueRange yielded, Joined &joined);
  llvm::LogicalResult write(PrefixScanOp scan);

  /// Reads parameters of a body in front of it, and takes fields of bundles from there; what else
  /// comes from outside, which loops are given: values, or bundles of them.
  llvm::FailureOr<llvm::SetVector<mlir::Value>> openBody(mlir::Operation *scan);

  /// Writes the body of a scan, bound for so many rows, in front of it; returns what it yields.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> writeBody(mlir::Operation *scan,
                                                            mlir::IRMapping &mapping, int64_t rows);
  /// Writes the body of a scan, bound for so many rows, at the end of the block of a loop's entry;
  /// returns what it yields.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> cloneBody(mlir::Operation *scan,
                                                            mlir::OpBuilder &inner,
                                                            mlir::Block &block,
                                                            mlir::IRMapping &mapping, int64_t rows);
  /// Joins the chunks of every result, and hands on what was carried.
  llvm::LogicalResult replace(ScanOp scan, const Joined &joined, bool marked,
                              llvm::ArrayRef<mlir::Value> carried);

  /// Gives `rows` the meaning that it has around a scan; null: none.
  void restoreRows(mlir::Attribute rows);

  Environment &environment;
  BindOperations bind;
  int64_t scanned = 0; ///< operations written so far
  unsigned depth = 0;  ///< of scans that are being written
};

} // namespace hydra
