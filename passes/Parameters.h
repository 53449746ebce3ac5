// Parameters that a value is, or is made of, and parameters by patterns over their names.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// The parameter that a value is, or null.
ParamOp parameterOf(mlir::Value value);
/// The same of a value that may be cast.
ParamOp castParameterOf(mlir::Value value);
/// The parameters that a value is: one, or the parts of a concatenation; empty when anything else
/// is.
llvm::SmallVector<ParamOp> joinedParametersOf(mlir::Value value);
/// The parameters that a value is made of, by moves alone; empty when anything else is in it.
llvm::SmallVector<ParamOp> parametersOf(mlir::Value value);

/// The parameters whose names match one of the patterns (`layers.*.wq`; `*` stands for any
/// characters, dots too, `?` for one, `[ab]` for one of these), each once, in the order of the
/// model. Fails, in one line, for a pattern that is none, and for one that matches nothing; `flag`
/// is what gave it.
llvm::FailureOr<llvm::SmallVector<ParamOp>>
parametersMatching(ModelOp model, llvm::ArrayRef<std::string> patterns, llvm::StringRef flag);

} // namespace hydra
