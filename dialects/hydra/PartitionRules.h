// What operations do where each rank has a part of the batch: the partition interface of all of
// them.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Attaches the partition interface to the operations of the dialect that have rules.
void attachPartitionRules(mlir::MLIRContext &context);

} // namespace hydra
