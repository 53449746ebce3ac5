// Random transformers whose rows and heads are as wide as tensor cores take them.
#pragma once

#include "test/support/ProgramText.h"

namespace hydra::test {

/// A model of a few layers, equal on every platform: attention of 32, 64 or 128 numbers a head and
/// a layer of one or two matrices or of experts behind it, with norms, rotations, masks and an
/// optimizer of many. Two of three have an entry `@loss` of tokens and labels, the others `@logits`
/// of tokens, with the scores of next ones.
BoundText randomTransformer(uint64_t seed);

/// Whether it has `@logits`.
bool readsOn(uint64_t seed);

} // namespace hydra::test
