// What a program returns while hydra-optimizer adds to it.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// The outputs of a program, and the new values of variables, but for its gradients.
struct ProgramOutputs {
  llvm::SmallVector<mlir::Attribute> names, updated; ///< of outputs and of variables
  llvm::SmallVector<mlir::Value> values, updates;    ///< in the same orders

  static ProgramOutputs of(ReturnOp end);

  /// One more output.
  void give(mlir::OpBuilder &b, llvm::StringRef name, mlir::Value value);
  /// One more new value, of a parameter or a state.
  void set(mlir::Operation *variable, mlir::Value value);

  /// Makes a program return them, and no gradients.
  void returnFrom(ReturnOp end) const;
};

} // namespace hydra
