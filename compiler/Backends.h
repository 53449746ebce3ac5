// Which backends there are.
#pragma once

#include "compiler/targets/Target.h"
#include "compiler/targets/TargetBackend.h"

#include "mlir/IR/DialectRegistry.h"

namespace hydra {

/// The backend of a target's kind. Throws Error, naming the description, when there is none.
const TargetBackend &backendOf(const Target &target);

/// Lets hydra-expand-kernels find the backends.
void registerBackends(mlir::DialectRegistry &registry);

} // namespace hydra
