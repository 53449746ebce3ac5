// Groups of a loop's kernel that become one.
#pragma once

#include "compiler/codegen/cuda/LoopSteps.h"

namespace hydra::cuda {

/// Makes one group of groups on the same rows that follow each other, as far as nothing between
/// them gets in the way. What one computes the next has in registers instead of loading it, and it
/// is stored only where steps behind both read it. Values and sums are the same, bit by bit.
void joinGroups(plan::LoopOp loop, std::vector<LoopStep> &steps);

} // namespace hydra::cuda
