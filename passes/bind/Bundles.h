// Bundles become the values that they hold, while programs are bound: part of hydra-bind.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra::bundles {

/// The values that these hold: of a bundle those of its fields, of others themselves. What is bound
/// has bundles only as results of `hydra.bundle`.
llvm::SmallVector<mlir::Value> flat(mlir::ValueRange values);

/// A value, or bundle of values, with the fields of `like`, from the front of `values`, which is
/// left with the rest.
mlir::Value rebuilt(mlir::OpBuilder &b, mlir::Value like, llvm::ArrayRef<mlir::Value> &values);

/// Reports at `op` that a value with the fields of `like` was to be there.
llvm::LogicalResult checkSameFields(mlir::Operation *op, mlir::Value like, mlir::Value value);

/// Reports an operand that is a bundle, for an operation that takes values only.
llvm::LogicalResult checkNone(mlir::Operation *op);

/// Replaces a `hydra.field` by the field, or reports that there is none.
llvm::LogicalResult take(FieldOp field);

/// The loop goes over and carries what bundles among its operands hold.
void open(ForOp loop);
/// The same for what bodies yield: an operation like `op` with a result for each value that
/// `yielded` holds, and behind it bundles like those for the users of `op`, which goes.
mlir::Operation *withFlatResults(mlir::Operation *op, mlir::ValueRange yielded);

/// Drops all bundles; nothing may use them any more.
void eraseAll(mlir::Operation *root);

} // namespace hydra::bundles
