// Which programs a bound model has, what each of them sets for itself, and what those that measure
// return beside a loss: part of hydra-bind.
#pragma once

#include "passes/bind/Settings.h"

namespace hydra {

class Programs {
public:
  explicit Programs(const Settings &settings) : settings(settings) {}

  /// Entries become the programs listed as NAME[@ROLE]:ENTRY[:SETTING]..., and all others go; an
  /// empty list keeps every entry. Reports what it cannot read, unknown entries, names given twice,
  /// and settings that a program cannot have for itself.
  llvm::LogicalResult select(ModelOp model, llvm::ArrayRef<std::string> programs);

  /// A bound program that measures a loss over labels which it makes itself, of documents for
  /// example, also returns how many of them count; who runs it cannot know.
  static llvm::LogicalResult returnLabels(EntryOp entry);

  /// The size of a dimension in a program: its own, or that of the settings; null: none.
  mlir::Attribute dim(llvm::StringRef program, llvm::StringRef name) const;
  /// Choices and flags that a program has for itself.
  llvm::StringMap<mlir::Attribute> choices(llvm::StringRef program) const;

private:
  llvm::LogicalResult readSetting(ModelOp model, llvm::StringRef program, EntryOp entry,
                                  llvm::StringRef setting);

  const Settings &settings;
  llvm::StringMap<llvm::StringMap<mlir::Attribute>> dimsOf, choicesOf; ///< by program
};

} // namespace hydra
