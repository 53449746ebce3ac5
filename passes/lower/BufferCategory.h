// What the bytes of buffers are for, in memory reports.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "dialects/plan/Plan.h"

namespace hydra {

/// Of a variable that is no parameter.
plan::Category categoryOf(StateOp state);
/// Of the result of an operation.
plan::Category categoryOf(mlir::Value result);

/// The class of the step that computes an operation.
OpClass classOf(mlir::Operation *op);

} // namespace hydra
