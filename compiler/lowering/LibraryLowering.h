// Operations that become calls of the executor's library functions.
#pragma once

#include "mlir/IR/DialectRegistry.h"

namespace hydra {

/// Attaches the plan lowering of matmuls, attention, embedding gradients, copies and fills.
void registerLibraryLowerings(mlir::DialectRegistry &registry);

} // namespace hydra
