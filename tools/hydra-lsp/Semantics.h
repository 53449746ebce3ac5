// What the bound model says of the names and lines of a text, as Markdown.
#pragma once

#include "tools/hydra-lsp/SymbolicShapes.h"
#include "tools/hydra-lsp/Uses.h"

#include <map>
#include <set>

namespace hydra::lsp {

class Semantics {
public:
  /// Of an analysis whose model is bound.
  explicit Semantics(Analysis &analysis);

  /// The types that a declared value has: one, or one for each way of calling its definition.
  std::string ofValue(const Name &name);
  /// The types of the results of the operation whose word is that token.
  std::string resultsOf(unsigned token, llvm::StringRef operation);
  /// What that operation costs.
  std::string costAt(unsigned token) const;
  /// What the operations of a statement cost together, those in its body too.
  std::string costOf(unsigned statement) const;
  /// Shape, number, bytes, initial values and names of a parameter or state.
  std::string ofVariable(const Name &name);
  /// The value of a symbol; empty for parameters of definitions, which have one for each call.
  std::string ofSymbol(const Name &name);
  /// The parameters of the whole model.
  std::string ofModel();

private:
  /// Whether the configuration leaves out what a statement computes.
  bool isAbsent(unsigned statement) const;
  using Values = llvm::SmallVector<mlir::Value>;

  Place placeOfToken(unsigned token) const;
  using Seen = std::set<std::pair<const void *, std::vector<std::string>>>;
  void collect(mlir::Value written, std::vector<std::string> path, Seen &seen, Values &found);
  void collectUses(mlir::Value written, unsigned depth, Values &found);
  std::string typesText(llvm::ArrayRef<mlir::Value> values);
  std::string costText(llvm::ArrayRef<const Use *> uses) const;
  /// How many layers of its stack have a variable, and the numbers of the first and last.
  llvm::SmallVector<int64_t> layersOf(mlir::Operation *variable) const;

  Analysis &analysis;
  const Names &names;
  Uses uses;
  std::optional<SymbolicShapes> symbolic; ///< made when it is first wanted
  mlir::ArrayAttr fields;                 ///< of a bundle that `collect` has come to
  std::map<Place, mlir::Operation *> written;
  std::map<Place, mlir::BlockArgument> writtenArguments;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<CallOp>> calls; ///< by what they call
};

} // namespace hydra::lsp
