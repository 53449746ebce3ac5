// The steps of a loop that becomes a kernel, and what they read and write.
#pragma once

#include "compiler/codegen/rows/RecordGroup.h"
#include "dialects/plan/Plan.h"

#include <optional>
#include <vector>

namespace hydra::cuda {

/// A step of the loop's body, for every slice.
struct LoopStep {
  plan::StepInterface op;
  llvm::SmallVector<mlir::Value> args; ///< what is the same has one name
  llvm::SmallVector<plan::Access> accesses;
  llvm::SmallVector<unsigned> sliced; ///< leading dimensions of each argument; of lanes none
  std::optional<RowProgram> program;  ///< of a group

  bool writes(unsigned i) const { return accesses[i] != plan::kRead; }
  bool reads(unsigned i) const { return accesses[i] != plan::kWrite; }
};

/// Whether every lane of a loop runs all iterations by itself: slices are single numbers.
bool hasLanes(plan::LoopOp loop);

/// The steps of a loop that has been given slices. Groups read what is copied for them alone where
/// it comes from; such copies are no steps.
llvm::FailureOr<std::vector<LoopStep>> loopSteps(plan::LoopOp loop);

/// The bytes by which a loop moves a value; 0 for one that it leaves in place.
int64_t strideOf(plan::LoopOp loop, mlir::Value value);

/// Where the first iteration finds a value, in elements from the lowest address of all.
int64_t firstElement(plan::LoopOp loop, mlir::Value value);

/// Where the first slice of a value that leaves its first `sliced` dimensions ends, in bytes from
/// the beginning of its buffer.
int64_t sliceEnd(mlir::Value value, unsigned sliced);

/// What a kernel touches of an argument in all iterations: a view with the iterations as its first
/// dimension, from the lowest address on. The loops around move it as they move the argument.
mlir::Value wholeOf(plan::LoopOp loop, mlir::Value value);

} // namespace hydra::cuda
