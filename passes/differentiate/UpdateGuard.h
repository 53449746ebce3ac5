// Whether a step updates, and the values that it leaves as they are: part of hydra-optimizer.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Whether a number is finite: neither infinite nor no number.
mlir::Value isFinite(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x);

/// A number, or infinity where the loss is above the limit and that is positive.
mlir::Value withinLimit(mlir::OpBuilder &b, mlir::Location loc, mlir::Value loss, mlir::Value limit,
                        mlir::Value number);

/// A number where the other one is finite, else infinity. On several ranks it asks for the whole
/// of the other one alone, which they have: of the loss.
mlir::Value whereFinite(mlir::OpBuilder &b, mlir::Location loc, mlir::Value other,
                        mlir::Value number);

/// The new value where the update is applied, else the old one. `change` makes of what an update
/// computes, and of the old value, the new one. What is computed in another shape, such as
/// blocks, is changed and guarded there, so that it is one pass over memory.
mlir::Value guardedAsMade(mlir::OpBuilder &b, mlir::Location loc, mlir::Value ok, mlir::Value fresh,
                          mlir::Value old,
                          llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> change);

} // namespace hydra
