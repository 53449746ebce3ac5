// One kernel for a whole loop: a block runs all iterations of its slice (plan.loop with
// `slices`; dialects/plan/Slices.h).
//
// The steps of an iteration follow each other in the block, with a barrier where one needs what
// another wrote. Buffers that live within an iteration, and those that are carried from one to the
// next, lie in shared memory as far as it reaches, the rest where the plan has put it. Groups of
// row-wise operations give a warp to each row, with a part of its columns in every lane; matmuls
// of 16-bit floats use the tensor cores. Groups of the same rows are one (LoopJoin.h). What chunks
// are fetched and stored is spread over the barriers of an iteration.
//
// Where no iteration needs another (areIterationsApart) and slices leave multiprocessors idle,
// several blocks share out the iterations of a slice.
#pragma once

#include "dialects/hydra/Target.h"
#include "dialects/plan/Plan.h"

#include <optional>
#include <string>

namespace hydra::cuda {

struct LoopKernel {
  std::string text; ///< parameters and body, behind the name of the kernel
  llvm::SmallVector<mlir::Value> args;
  llvm::SmallVector<int64_t> access;
  int64_t blocks = 1, parts = 1; ///< slices (x), and blocks that have iterations of each (y)
  int64_t threads = 1, sharedBytes = 0;
  std::optional<int64_t> bytes; ///< that it moves, where that is not what its steps would
};

/// The kernel for a loop that has `slices`, with the shared memory that a block of the target can
/// have; fails, with the place, for element types without code.
llvm::FailureOr<LoopKernel> writeLoopKernel(plan::LoopOp loop, TargetAttr target);

} // namespace hydra::cuda
