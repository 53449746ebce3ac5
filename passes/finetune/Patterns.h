// Parameters by patterns over their names, and those that a value is made of.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// The parameters whose names match one of the patterns (`layers.*.wq`; `*` stands for any
/// characters, dots too, `?` for one, `[ab]` for one of these), each once, in the order of the
/// model. Fails, in one line, for a pattern that is none, and for one that matches nothing; `flag`
/// is what gave it.
llvm::FailureOr<llvm::SmallVector<ParamOp>>
parametersMatching(ModelOp model, llvm::ArrayRef<std::string> patterns, llvm::StringRef flag);

/// The parameters that a value is made of, by moves alone; empty when anything else is in it.
llvm::SmallVector<ParamOp> parametersOf(mlir::Value value);

} // namespace hydra
