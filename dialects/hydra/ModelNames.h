// What must hold for the names of a model.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// The part of the verification of a model that holds for some of its declarations as well, if all
/// that they name is among them: not that something uses each. Reports all errors.
llvm::LogicalResult verifyNames(ModelOp model);

} // namespace hydra
