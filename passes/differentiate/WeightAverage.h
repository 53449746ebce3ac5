// Averages of the values that updates give to parameters.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// The share that the newest value has in an average, in f32: with `emaDecay` = d the larger one of
/// 1 - d and 1 / t, t being the number of the update `[]` i32, from 1; else 1 / (t - swaFrom + 1),
/// and 1 before update `swaFrom`.
mlir::Value shareInAverage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value number,
                           double emaDecay, int64_t swaFrom);

/// The average, moved towards the new value by the share: a step of gradient descent on half of
/// their squared distance, element by element.
mlir::Value movedAverage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value average,
                         mlir::Value fresh, mlir::Value share);

} // namespace hydra
