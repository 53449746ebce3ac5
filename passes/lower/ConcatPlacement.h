// Values that are made where a concatenation wants them: part of hydra-to-plan.
#pragma once

#include "dialects/plan/Lowering.h"
#include "passes/lower/Liveness.h"

#include "llvm/ADT/DenseSet.h"

namespace hydra {

class ConcatPlacement {
public:
  ConcatPlacement(plan::Lowering &lowering, ProgramLiveness &liveness)
      : lowering(lowering), liveness(liveness) {}

  /// The bytes of a concatenation that a value will be, itself or reshaped; null if it must have
  /// its own. What others read as well they read there, and all of the concatenation lives as long.
  mlir::Value place(mlir::Value result);
  /// Whether a part of a concatenation was placed.
  bool contains(mlir::Operation *concat, unsigned part) const {
    return placed.contains({concat, part});
  }

private:
  plan::Lowering &lowering;
  ProgramLiveness &liveness;
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> placed;
};

} // namespace hydra
