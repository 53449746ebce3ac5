// Bodies of scans and prefix scans, bound for the rows that they are given: part of hydra-bind.
#pragma once

#include "dialects/hydra/Expr.h"
#include "dialects/hydra/Hydra.h"

#include "mlir/IR/IRMapping.h"

#include <functional>

namespace hydra {

class ScanBodies {
public:
  /// Binds operations of a block in place.
  using BindOperations =
      std::function<llvm::LogicalResult(mlir::Block::iterator, mlir::Block::iterator)>;

  /// `environment` holds the symbols that `bind` goes by; each copy of a body has its own `rows`.
  ScanBodies(Environment &environment, BindOperations bind)
      : bind(std::move(bind)), environment(environment) {}

  const BindOperations bind;

  /// Reads parameters of a body in front of it, and takes fields of bundles from there; what else
  /// comes from outside, which loops are given: values, or bundles of them.
  llvm::FailureOr<llvm::SetVector<mlir::Value>> open(mlir::Operation *scan);

  /// Writes the body of a scan, bound for so many rows, in front of it; returns what it yields.
  /// Reports scans that would become more than a million operations, as does writeInto.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> write(mlir::Operation *scan,
                                                        mlir::IRMapping &mapping, int64_t rows);

  /// The same at the end of the block of a loop's entry.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>>
  writeInto(mlir::Block &block, mlir::Operation *scan, mlir::IRMapping &mapping, int64_t rows);

private:
  /// Gives `rows` the meaning that it has around a scan; null: none.
  void restoreRows(mlir::Attribute rows);
  /// Gives it the meaning that it has in the body of a scan; returns the one that it had.
  mlir::Attribute setRows(mlir::Operation *scan, int64_t rows);

  Environment &environment;
  int64_t scanned = 0; ///< operations written so far
};

/// What all scans need around bodies.
namespace scans {

mlir::Value slice(mlir::OpBuilder &b, mlir::Value v, int64_t axis, int64_t start, int64_t rows);

/// The length of sequences along an axis that must be a number and one of theirs.
llvm::FailureOr<int64_t> commonLength(mlir::Operation *scan, mlir::Attribute axisAttr,
                                      llvm::ArrayRef<mlir::Value> sequences);

/// Loops have no parameters inside: one that is used within a condition or a stack of layers, which
/// later passes resolve, cannot be read outside.
bool canBeLoop(mlir::Operation *scan);

/// A value like each of these, of what `part` makes of the values that it holds.
llvm::SmallVector<mlir::Value> eachLike(mlir::OpBuilder &b, mlir::ValueRange likes,
                                        llvm::function_ref<mlir::Value(mlir::Value)> part);

/// Marks in front of a scan, for hydra-cache, where it begins: what the mark gives of flat
/// sequences and carried values.
llvm::SmallVector<mlir::Value> markBegin(mlir::Operation *scan, int64_t axis, int64_t chunk,
                                         mlir::ValueRange sequences, mlir::ValueRange carried);
/// The same where it ends, of results and what is carried on.
llvm::SmallVector<mlir::Value> markEnd(mlir::Operation *scan, int64_t axis,
                                       mlir::ValueRange results, mlir::ValueRange carried);

} // namespace scans
} // namespace hydra
