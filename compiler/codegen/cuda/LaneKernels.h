// One kernel for a whole loop, a thread for each lane (plan.loop whose slices are single numbers;
// dialects/plan/Slices.h): linear recurrences, and other scans by numbers.
//
// A lane reads what iterations share, and what is carried into the first one, once; then every
// iteration is arithmetic in registers. Numbers of sequences depend on nothing that is computed, so
// those of several iterations are asked for at once: a lane waits for memory once for all of them.
// Traffic is that of the sequences; no lane waits for another, and sums are in the order of
// iterations.
#pragma once

#include "compiler/codegen/cuda/LoopKernels.h"

namespace hydra::cuda {

/// The kernel for a loop that has lanes, in blocks that meet as many multiprocessors as there are;
/// fails, with the place, for element types without code.
llvm::FailureOr<LoopKernel> writeLaneKernel(plan::LoopOp loop, int64_t multiprocessors);

} // namespace hydra::cuda
