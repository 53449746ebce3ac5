// Cross entropy of rows of logits, written as row-wise operations.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Logits `[T, V]` in f32 with labels `[T]` i32; a row with label -100 does not count, and what one
/// with a label that names no class makes is no number: labels that a program computes are not
/// checked before. models.md section 1.3.
struct RowLoss {
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value logits, labels;
  int64_t classes = 0; ///< that labels name; 0: all columns

  /// The logarithm of the sum of e^logits of every row `[T]`.
  mlir::Value logSumExp() const;
  /// lse - logits[label] of rows that count, 0 of others: `[T]`.
  mlir::Value losses(mlir::Value lse) const;
  /// `weight (e^(logits - lse) - onehot(label))` on rows that count, 0 on others: `[T, V]`.
  mlir::Value gradient(mlir::Value lse, mlir::Value weight) const;

  /// The number of rows that count: `[]`, f32.
  static mlir::Value countOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value labels);
  /// 1 / (what the loss divides by): `[]`. Null `count`: the rows that count, at least 1.
  static mlir::Value shareOfRow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value labels,
                                mlir::Value count);

private:
  /// A value of every row `[T]`, repeated over its columns.
  mlir::Value spread(mlir::Value v) const;
  /// A value of every row `[T]` whose label names a class; no number in others.
  mlir::Value whereNamed(mlir::Value v) const;
  /// Truth values: where a column is the label of its row `[T, V]`, and which rows count `[T]`.
  mlir::Value hits() const;
  static mlir::Value validRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value labels);
};

} // namespace hydra
