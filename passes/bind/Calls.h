// Calls of definitions and arithmetic are written out in place: part of hydra-bind.
#pragma once

#include "dialects/hydra/Expr.h"
#include "dialects/hydra/Hydra.h"

namespace hydra {

class CallWriter {
public:
  /// `environment` holds the symbols that the values of parameters go by.
  explicit CallWriter(Environment &environment) : environment(environment) {}

  /// Whether what a definition becomes keeps the place of its call, behind its own (CallSiteLoc).
  bool callSites = false;
  /// Whether calls behind a wrong one are written out, and wrong ones stay.
  bool allErrors = false;

  /// Refuses definitions that call themselves, and chains of them that grow beyond all measure.
  llvm::LogicalResult check(ModelOp model);

  /// Notes which operations are in which section of the model's text, and removes the sections.
  static void takeSections(ModelOp model);

  /// Writes the operations of arithmetic and of definitions instead of `hydra.let` and `hydra.call`
  /// in a block; not in regions inside of it, which a configuration may not have.
  llvm::LogicalResult writeOut(mlir::Block &block);
  /// The same in all regions of an operation.
  llvm::LogicalResult writeOutInside(mlir::Operation *op);

private:
  /// The values that a call gives to parameters, by name.
  llvm::FailureOr<llvm::StringMap<mlir::Attribute>> parameters(CallOp call, DefOp callee);
  llvm::FailureOr<mlir::Attribute> parameter(CallOp call, llvm::StringRef name, SymbolKind kind,
                                             mlir::Attribute given);

  Environment &environment;
};

} // namespace hydra
