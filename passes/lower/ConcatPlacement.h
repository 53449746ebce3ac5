// Values that are made where a concatenation wants them: part of hydra-to-plan.
#pragma once

#include "dialects/plan/Lowering.h"

#include "llvm/ADT/DenseSet.h"

namespace hydra {

class ConcatPlacement {
public:
  explicit ConcatPlacement(plan::Lowering &lowering) : lowering(lowering) {}

  /// The bytes of a concatenation that a value with no other use will be, itself or reshaped; null
  /// if it must have its own.
  mlir::Value place(mlir::Value result);
  /// Whether a part of a concatenation was placed.
  bool contains(mlir::Operation *concat, unsigned part) const {
    return placed.contains({concat, part});
  }

private:
  plan::Lowering &lowering;
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> placed;
};

} // namespace hydra
