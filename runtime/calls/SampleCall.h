// What the action Sample takes. The same on every target.
#pragma once

#include "runtime/calls/CallSite.h"

namespace hydra::runtime {

/// `sample(scores, tokens, position, settings, draw, token, seen)`: sets the bits of `tokens [B,
/// C]` i32 in `seen [B, ceil(V / 32)]` i32, from none where `position [B]` f32 is 0, and draws
/// `token [B]` i32 from `scores [B, V]` f32 by `settings [B, 5]` f32 and `draw [B, 4]` i32
/// (support/Sampling.h). Where position is negative nothing is set, and token is 0. All dense.
struct SampleSpec {
  int64_t batch = 0, ids = 0, tokens = 0; ///< B, V, C
};

/// Numbers in a row of settings, and of draw.
inline constexpr int64_t kSamplingSettings = 5, kSamplingDraw = 4;
/// The most ids: sums of a byte of the weights of all fit 32 bits.
inline constexpr int64_t kMostSampled = int64_t{1} << 24;

/// The call that a step asks for. Throws Error when its tensors do not fit.
SampleSpec describeSample(const CallSite &site);

} // namespace hydra::runtime
