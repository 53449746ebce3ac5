// Values of a model's symbols, from defaults, a preset and settings: part of hydra-bind.
#pragma once

#include "dialects/hydra/Expr.h"
#include "dialects/hydra/Hydra.h"

#include "llvm/ADT/MapVector.h"

namespace hydra {

class Settings {
public:
  /// Values go into `environment`.
  explicit Settings(Environment &environment) : environment(environment) {}

  /// Whether derived values behind a wrong one are looked at.
  bool allErrors = false;

  /// Gives every symbol of the model a value, and every derived value its own. `preset` may be
  /// empty; `settings` (NAME=VALUE) win over it and also give dimensions of entries. Reports names
  /// that the model does not have, values that do not fit, and symbols without a value.
  llvm::LogicalResult resolve(ModelOp model, llvm::StringRef preset,
                              llvm::ArrayRef<std::string> settings);

  struct Symbol {
    SymbolKind kind;
    mlir::ArrayAttr options;
  };
  /// Null if the model has no such symbol.
  const Symbol *lookup(llvm::StringRef name) const;

  /// What the settings give a dimension of entries; null: nothing.
  mlir::Attribute entryDim(llvm::StringRef name) const { return entryDims.lookup(name); }
  /// Reports a size of an entry's dimension that is no positive integer.
  llvm::LogicalResult checkEntryDim(llvm::StringRef name, mlir::Attribute value,
                                    llvm::StringRef text) const;

private:
  llvm::LogicalResult declareSymbols();
  llvm::LogicalResult give(llvm::StringRef name, mlir::Attribute value, mlir::Operation *where,
                           llvm::StringRef source);
  llvm::LogicalResult applyPreset(llvm::StringRef preset);
  llvm::LogicalResult applySettings(llvm::ArrayRef<std::string> settings);
  llvm::LogicalResult checkComplete();
  llvm::LogicalResult derive();

  Environment &environment;
  mutable ModelOp model; ///< operations report through handles that are not const
  llvm::MapVector<llvm::StringRef, Symbol> symbols;
  llvm::StringMap<mlir::Attribute> entryDims;
};

} // namespace hydra
