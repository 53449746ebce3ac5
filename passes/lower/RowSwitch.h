// Steps on a number of rows that only the device knows.
#pragma once

#include "dialects/plan/Plan.h"

namespace hydra {

/// A step of a program, and what becomes of it when fewer rows are active.
struct RowStep {
  enum Kind {
    Each,  ///< works on those rows
    Sum,   ///< sums over those rows; without any its result is zero, or what it is added to
    Always ///< stays as it is
  };
  mlir::Operation *step;
  Kind kind;
  llvm::SmallVector<unsigned> args; ///< of a call: those that have the rows
};

/// Moves steps into a switch behind the last of them: case i works on the first i * granule of
/// `rows` rows. The device takes the smallest that covers `count`.
void switchByRows(mlir::OpBuilder &b, llvm::ArrayRef<RowStep> steps, mlir::Value count,
                  int64_t rows);

} // namespace hydra
