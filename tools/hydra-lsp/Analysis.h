// One version of a document as the compiler sees it: parsed, verified, bound.
//
// Where something is wrong, all that can be told without guessing is told: the declarations that
// have errors are left out, with all that mentions them, and the rest is looked at.
#pragma once

#include "dialects/hydra/Hydra.h"
#include "tools/hydra-lsp/Configuration.h"
#include "tools/hydra-lsp/Declarations.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <chrono>

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

  /// The model as it is written, or what of it is right; null where there is none.
  ModelOp written();
  /// The model with numbers and types; null where anything is wrong.
  ModelOp bound();
  /// A copy of the model, bound differently; null where it cannot be. Nothing is reported.
  mlir::OwningOpRef<mlir::ModuleOp> bind(const BindingOptions &binding);

  /// With what the model is bound, batch and sequence as the model has them.
  const BindingOptions &binding() const { return choice.binding; }
  const Names &text() const { return names; }

private:
  using Module = mlir::OwningOpRef<mlir::ModuleOp>;

  void read();
  /// Nothing is verified.
  Module parse(llvm::StringRef text);
  bool parses(llvm::StringRef text);
  /// Marks the declarations that cannot be parsed, beginning with those of the last errors.
  void findSyntaxErrors();
  /// The declaration that an error of the parser is about; kNone: it is about no declaration.
  unsigned culpritOf(size_t place);
  /// Marks the declarations of the last errors; whether there are any that were not marked.
  bool markWrong();
  /// What is left of the text without wrong declarations; null where that is nothing.
  Module rest();
  /// Whether it can be bound.
  bool verify(mlir::ModuleOp of);
  bool hasErrors() const;
  /// Whether so much is found, or so long looked, that no more is to be looked for.
  bool isEnough() const;
  void bindChoice();
  /// Whether all that the model needs has a value; what has none, and could have, is noted.
  bool isComplete();
  void settleBatch();
  void note(mlir::Diagnostic &diagnostic);
  size_t offsetOf(mlir::Location location) const;
  void cover(mlir::Location location, size_t &begin, size_t &end) const;

  const Names &names;
  Declarations declarations;
  Choice choice;
  llvm::BitVector wrong;          ///< declarations that have errors
  std::vector<size_t> lastErrors; ///< places of what the last look at the text has found
  bool isTrial = false;           ///< what is found is not to be reported
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::string source = "hydra";
  std::vector<Finding> list;
  mlir::MLIRContext context;
  Module module, boundModule;
};

} // namespace hydra::lsp
