// What reads what was gathered, and what gathers it again for some of that.
#pragma once

#include "dialects/hydra/Hydra.h"

namespace hydra {

/// An operation that reads what was gathered, itself or behind views of it.
struct GatherReader {
  mlir::OpOperand *operand;
  llvm::SmallVector<mlir::Operation *> views; ///< from the gather on
};

/// All of a gather, in the order in which they stand in its program.
llvm::SmallVector<GatherReader> readersOf(AllGatherOp gather);

/// The same gather once more, in front of its first reader, with a number of its own.
class GatherAgain {
public:
  GatherAgain(AllGatherOp gather, mlir::Operation *before, int64_t number);

  /// Lets an operation read this one, by the same views.
  void readBy(const GatherReader &reader);
  AllGatherOp gather() const { return copy; }

private:
  AllGatherOp copy;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> copies; ///< of the gather and of its views
};

/// A number that no collective of a model has.
int64_t freeGatherNumber(ModelOp model);

} // namespace hydra
