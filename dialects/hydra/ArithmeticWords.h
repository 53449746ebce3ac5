// Which operations arithmetic has operators and functions for.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// An operator and the operation that it stands for.
struct Operator {
  llvm::StringRef head;
  unsigned operands;
  llvm::StringRef operation, predicate;
};

/// The operator of that text; null: values have none.
const Operator *operatorOf(llvm::StringRef head, size_t operands);
/// The operator that an operation is written as; null: a function.
const Operator *operatorOf(mlir::Operation *op);

/// Operations that are functions: of values, or without operands but for uses, which are `@w`.
bool isFunction(mlir::OperationName name);

/// A constant that is written as its number alone.
ConstantOp plainNumber(mlir::Operation *op);

} // namespace hydra
