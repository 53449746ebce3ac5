// Symbol expressions as people write them.
#pragma once

#include "mlir/IR/Attributes.h"

#include <string>

namespace hydra {

/// For messages.
std::string exprText(mlir::Attribute expr);

} // namespace hydra
