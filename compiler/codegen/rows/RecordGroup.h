// The program of a group of row-wise operations.
#pragma once

#include "compiler/codegen/rows/RowProgram.h"
#include "dialects/hydra/Hydra.h"

namespace hydra {

/// A located error if no generated code works on some element type.
llvm::FailureOr<RowProgram> recordRows(FusedOp group);

} // namespace hydra
