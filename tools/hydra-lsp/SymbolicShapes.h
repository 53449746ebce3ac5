// Which symbols the dimensions of a bound model are made of.
#pragma once

#include "tools/hydra-lsp/Analysis.h"

#include "llvm/ADT/DenseMap.h"

namespace hydra::lsp {

/// Found by binding the model again, with one symbol after the other twice as large: a dimension of
/// 128 that is always as large as B * S is `B * S`. What no short expression over symbols gives in
/// all of these stays a number.
class SymbolicShapes {
public:
  /// Of a bound model.
  explicit SymbolicShapes(Analysis &analysis);

  /// `[B, S, 2 * F]`.
  std::string shapeOf(mlir::Value value) const;

private:
  /// A number under each of the bindings.
  using Sample = std::vector<int64_t>;
  struct Symbol {
    std::string name;
    Sample values;
  };

  std::string dimension(const Sample &sample) const;

  std::vector<Symbol> symbols;
  llvm::DenseMap<mlir::Value, std::vector<Sample>> shapes;
};

} // namespace hydra::lsp
