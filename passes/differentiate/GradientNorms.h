// Norms of gradients and what goes by them: clipping, slower steps, outputs for people. Part of
// hydra-optimizer.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Trained parameters and their gradients, in the same order. Gradients of units (hydra-shard) are
/// added up, and counted, apart from all others, so that their sum is exchanged once.
struct Gradients {
  llvm::SmallVector<ParamOp> params;
  llvm::SmallVector<mlir::Value> values;
};

/// Makes a value an output of the program, under a name.
using GiveOutput = llvm::function_ref<void(const llvm::Twine &name, mlir::Value value)>;

/// The norm of all gradients, times `inverse` unless that is null. `groups`: those of the optimizer
/// groups are outputs.
mlir::Value gradientNorm(mlir::OpBuilder &b, mlir::Location loc, const Gradients &gradients,
                         mlir::Value inverse, bool groups, GiveOutput give);

/// Outputs that count the magnitudes of the gradients of each group, times `inverse` unless that is
/// null. `apart`, without it: each gradient is counted where it is made.
void giveGradHistograms(mlir::OpBuilder &b, mlir::Location loc, const Gradients &gradients,
                        mlir::Value inverse, bool apart, GiveOutput give);

/// min(1, clip / (norm + 1e-6)), or 1 when clip is not positive: models.md section 1.3.
mlir::Value clipScale(mlir::OpBuilder &b, mlir::Location loc, mlir::Value norm, mlir::Value clip);

/// The learning rate, or its part where the norm is above the bound and that is positive.
mlir::Value slowed(mlir::OpBuilder &b, mlir::Location loc, mlir::Value rate, mlir::Value norm,
                   mlir::Value bound);

} // namespace hydra
