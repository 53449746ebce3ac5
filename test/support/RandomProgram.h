// Random well-formed models as text, to hold passes and backends before and after.
#pragma once

#include "test/support/ProgramText.h"

namespace hydra::test {

/// One model in two forms that must mean the same: `layered` as a person would write it, with
/// symbols, stacks, conditions, definitions and implicit broadcasts, and `flat` with all of these
/// written out by the generator. Both have one entry `@loss(tokens, labels, …)` whose output `loss`
/// is a scalar, the same arguments, and after unrolling the same parameters and state.
struct RandomProgram {
  BoundText layered, flat;
};

/// The program of a seed, with about `size` operations besides idioms and the loss; equal on every
/// platform. Sizes are small and often odd; batch and sequence may be 1. `batch`: 0, or the batch.
RandomProgram randomProgram(uint64_t seed, unsigned size = 12, int64_t batch = 0);

} // namespace hydra::test
