// hydra-bind for those who show all that is wrong with a model.
#pragma once

#include "passes/Passes.h"

namespace hydra {

/// The pass reports each error that does not follow from another one, where `createBind` ends with
/// the first.
std::unique_ptr<mlir::Pass> createBindWithAllErrors(BindOptions options);

} // namespace hydra
