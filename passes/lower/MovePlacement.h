// Values that are made where an operation would move them: part of hydra-to-plan.
#pragma once

#include "dialects/plan/Lowering.h"
#include "passes/lower/Liveness.h"

#include "llvm/ADT/DenseSet.h"

namespace hydra {

/// Whether the readers of a value take it where it is such a part of a buffer, from element `start`
/// on.
bool canBeRead(mlir::Value result, mlir::MemRefType part, int64_t start, mlir::Value buffer);

/// Whether a program returns a value, or a view of it.
bool isReturned(mlir::Value value);

class MovePlacement {
public:
  MovePlacement(plan::Lowering &lowering, ProgramLiveness &liveness)
      : lowering(lowering), liveness(liveness) {}

  /// The bytes of a concatenation, a padding or a copy that a value will be, itself or as a view
  /// that reshapes and transposes it; null if it must have its own. What others read as well they
  /// read there, and all of what it is moved to lives as long.
  mlir::Value place(mlir::Value result);
  /// What a copy may be instead of bytes of its own: what it is a copy of, where that lies as the
  /// copy would; null where they must be apart.
  mlir::Value aliasOf(CopyOp copy);
  /// Whether an operand of what moves it was placed.
  bool contains(mlir::Operation *move, unsigned operand) const {
    return placed.contains({move, operand});
  }

private:
  mlir::Value placeAt(mlir::Value result, mlir::OpOperand &use);

  plan::Lowering &lowering;
  ProgramLiveness &liveness;
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> placed;
};

} // namespace hydra
