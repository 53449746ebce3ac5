// The state that multiplies the loss, so that small gradients are not lost in a narrow format.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// The state of role `loss_scaling` of that name: one number, created behind all other variables
/// where the model has none. Fails, with the place, where something else has the name.
llvm::FailureOr<StateOp> lossScaling(ModelOp model, llvm::StringRef name, mlir::Location loc,
                                     mlir::Type type, double initial);

/// What the gradients of the programs of a model have been multiplied by; null: nothing.
StateOp lossScaleOf(ModelOp model);

/// Keeps the gradients that losses save in their forward sweep in range: they are of the loss times
/// `scale []`, and what reads them, or the loss, sees them divided by it.
void scaleSavedGradients(EntryOp entry, StateOp scale);

/// The new values of the scale, and of the number of updates since it changed, as `applied` (i1)
/// says.
struct LossScaleUpdate {
  mlir::Value scale, age;
};
LossScaleUpdate updateLossScale(mlir::OpBuilder &b, mlir::Location loc, mlir::Value scale,
                                mlir::Value age, mlir::Value applied);

} // namespace hydra
