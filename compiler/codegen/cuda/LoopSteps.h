// The steps of a loop that becomes a kernel, and what they read and write.
#pragma once

#include "compiler/codegen/RecordGroup.h"
#include "dialects/plan/Plan.h"

#include <optional>
#include <vector>

namespace hydra::cuda {

/// A step of the loop's body, for every slice.
struct LoopStep {
  plan::StepInterface op;
  llvm::SmallVector<mlir::Value> args; ///< what is the same has one name
  llvm::SmallVector<plan::Access> accesses;
  llvm::SmallVector<unsigned> sliced; ///< leading dimensions of each argument
  std::optional<RowProgram> program;  ///< of a group

  bool writes(unsigned i) const { return accesses[i] != plan::kRead; }
  bool reads(unsigned i) const { return accesses[i] != plan::kWrite; }
};

/// The steps of a loop that has been given slices. Groups read what is copied for them alone where
/// it comes from; such copies are no steps.
llvm::FailureOr<std::vector<LoopStep>> loopSteps(plan::LoopOp loop);

/// The bytes by which a loop moves a value; 0 for one that it leaves in place.
int64_t strideOf(plan::LoopOp loop, mlir::Value value);

} // namespace hydra::cuda
