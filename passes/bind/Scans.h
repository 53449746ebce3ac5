// Scans become loops, or are written out, while they are bound: part of hydra-bind.
#pragma once

#include "passes/bind/ScanBodies.h"

namespace hydra {

class ScanWriter {
public:
  /// As ScanBodies are given them.
  ScanWriter(Environment &environment, ScanBodies::BindOperations bind)
      : bodies(environment, std::move(bind)) {}

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
  /// The chunks of every joined value, and one chunk of each result that they make up, which may
  /// be a bundle.
  struct Joined {
    std::vector<llvm::SmallVector<mlir::Value>> parts;
    llvm::SmallVector<mlir::Value> likes;
  };

  /// A loop over the whole chunks, if they are many; the body once more for every other chunk.
  /// `marked`: between marks.
  llvm::LogicalResult write(ScanOp scan, bool marked);
  /// A loop over the first chunks, whose body becomes an entry.
  llvm::LogicalResult writeLoop(ScanOp scan, int64_t chunks, bool hasRest, Joined &joined,
                                llvm::SmallVectorImpl<mlir::Value> &carried);
  /// What a body yields must be like what the chunk before did, and what is carried.
  static llvm::LogicalResult checkYielded(ScanOp scan, mlir::ValueRange yielded, Joined &joined);
  /// Joins the chunks of every result, and hands on what was carried.
  llvm::LogicalResult replace(ScanOp scan, const Joined &joined, bool marked,
                              llvm::ArrayRef<mlir::Value> carried);

  ScanBodies bodies;
  unsigned depth = 0; ///< of scans that are being written
};

} // namespace hydra
