// Lists of symbols as models and definitions declare them: `dims(D, C = 4) reals(eps = 1.0e-5)`.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// Of every symbol its name, its `SymbolKind`, its default or a unit attribute, and what a choice
/// can be.
struct SymbolLists {
  llvm::SmallVector<mlir::Attribute> names, kinds, defaults, options;

  mlir::ParseResult parse(mlir::OpAsmParser &parser);
  void print(mlir::OpAsmPrinter &printer) const;
  llvm::LogicalResult verify(mlir::Operation *op) const;
};

/// Whether a name is made of letters, digits and '_', with no digit in front.
bool isWord(llvm::StringRef name);

/// `name = expression`, or a name alone unless a value is required.
mlir::ParseResult parseAssignment(mlir::OpAsmParser &parser, std::string &name,
                                  mlir::Attribute &value, bool required);

/// A literal from an expression that is one, else null: a lone identifier is the option of a
/// choice.
mlir::Attribute literal(mlir::Attribute expr);
void printLiteral(mlir::OpAsmPrinter &printer, mlir::Attribute value);

} // namespace hydra
