// What several ranks share: the mesh that a model is bound for, and which dimensions are the batch.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// The mesh of axes `NAME:SIZE`, outermost first; null for none. Reports what cannot be read.
llvm::FailureOr<MeshAttr> readMesh(ModelOp model, llvm::ArrayRef<std::string> axes);

/// Notes on an entry which dimension of each argument is the batch, while shapes are expressions. An
/// entry without a batch, or one that generates, is the same on all ranks: nothing is noted. Reports an
/// argument that has the batch otherwise than as one dimension.
llvm::LogicalResult noteRows(EntryOp entry);

} // namespace hydra
