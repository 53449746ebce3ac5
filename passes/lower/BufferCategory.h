// What the bytes of buffers are for, in memory reports.
#pragma once

#include "passes/bind/ValueTags.h"

namespace hydra {

/// The value inside a group or a loop that becomes a result of it; null of any other operation.
mlir::Value madeInside(mlir::Value result);

/// Of the result of an operation: as its location is tagged. Of a group or a loop what is inside
/// says it; where nothing does, the operation.
Category categoryOf(mlir::Value result);

} // namespace hydra
