// Operands of elementwise operations get their common type and shape: part of hydra-bind.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra::elementwise {

/// A constant that says neither shape nor element type is of the type that the others have. Reports
/// a value that is no number of that type.
llvm::LogicalResult typeNumbers(mlir::Operation *op);

/// Gives all operands of an elementwise operation their common shape, as NumPy would; returns how
/// many were broadcast, and reports shapes that have none in common.
llvm::FailureOr<unsigned> broadcastOperands(mlir::Operation *op);

} // namespace hydra::elementwise
