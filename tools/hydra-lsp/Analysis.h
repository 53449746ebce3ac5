// One version of a document as the compiler sees it: parsed, verified, bound.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "tools/hydra-lsp/Configuration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace hydra::lsp {

/// Line and column, from 1, the column in bytes.
using Place = std::pair<unsigned, unsigned>;
/// The first place in a file that a location leads to.
std::optional<Place> placeOf(mlir::Location location);
/// Those of the calls of definitions through which a bound operation came into its program.
std::vector<Place> callPlacesOf(mlir::Location location);

/// A problem, with bytes of the document.
struct Finding {
  size_t begin = 0, end = 0;
  llvm::lsp::DiagnosticSeverity severity = llvm::lsp::DiagnosticSeverity::Error;
  std::string source, message;
  struct Note {
    size_t begin, end;
    std::string message;
  };
  std::vector<Note> notes;
};

class Analysis {
public:
  /// `names` must outlive it.
  Analysis(const Names &names, Choice choice);

  llvm::ArrayRef<Finding> findings() const { return list; }

  /// The model as it is written; null where the text is none.
  ModelOp written();
  /// The model with numbers and types; null where it cannot be bound.
  ModelOp bound();
  /// A copy of the model, bound differently; null where it cannot be. Nothing is reported.
  mlir::OwningOpRef<mlir::ModuleOp> bind(const BindingOptions &binding);

  /// With what the model is bound, batch and sequence as the model has them.
  const BindingOptions &binding() const { return choice.binding; }
  const Names &text() const { return names; }

private:
  void parse();
  /// Whether all that the model needs has a value; what has none, and could have, is noted.
  bool isComplete();
  void settleBatch();
  void note(mlir::Diagnostic &diagnostic);
  void cover(mlir::Location location, size_t &begin, size_t &end) const;

  const Names &names;
  Choice choice;
  std::string source = "hydra";
  std::vector<Finding> list;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module, boundModule;
};

} // namespace hydra::lsp
