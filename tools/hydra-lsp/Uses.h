// What the lines of a model cost once it is bound: each operation, how often it runs, and its work.
#pragma once

#include "tools/hydra-lsp/Analysis.h"

#include "llvm/ADT/DenseMap.h"

namespace hydra::lsp {

/// One operation of a bound model, which a program runs once or, in layers and loops, many times.
struct Use {
  mlir::Operation *op;
  llvm::StringRef program;       ///< the entry that runs it
  uint64_t count = 1;            ///< executions in one run of the program
  uint64_t flops = 0, bytes = 0; ///< of all executions; a multiply-add counts 2
  bool alike = true;             ///< whether each execution is the same work
  std::string layers;            ///< `layers 0 to 11`, or empty
};

/// The uses of all places of a model. A line of a definition is used wherever that is called.
class Uses {
public:
  explicit Uses(ModelOp bound);

  llvm::ArrayRef<Use> at(Place place) const;
  /// Those whose place is in a part of the text, in its order; then those of what is called there.
  llvm::SmallVector<const Use *> between(Place begin, Place end) const;
  /// Values that come into a body at a place: arguments of entries, loops and scans.
  llvm::ArrayRef<mlir::Value> argumentsAt(Place place) const;

private:
  struct Frame;
  void visit(mlir::Block &block, const Frame &frame);
  void add(mlir::Operation &op, Place place, const Frame &frame);

  std::map<Place, std::vector<Use>> places;
  /// By the place of a call, the uses of what it calls: where they are and which of those there.
  std::map<Place, std::vector<std::pair<Place, size_t>>> called;
  std::map<Place, std::vector<mlir::Value>> arguments;
};

} // namespace hydra::lsp
