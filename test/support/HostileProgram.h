// Random programs that look for what a compiler may get wrong: sizes of 1, broadcasts, sums of what
// does not vary, views of views, the same value twice, losses without weights.
#pragma once

#include "test/support/ProgramText.h"

namespace hydra::test {

enum class HostileKind {
  Program,  ///< operations of every kind on parameters and inputs
  Scan,     ///< the same with scans and prefix scans
  Training, ///< language models with tokens, labels, groups, state and layers
};

/// The program of a kind and a seed, equal on every platform: a model with an entry `@loss` whose
/// result `loss` is one number. Every operation stands on a line of its own; sizes are numbers,
/// except for `B` and `S` of training models. Most programs have fewer than ten operations.
BoundText hostileProgram(HostileKind kind, uint64_t seed);

} // namespace hydra::test
