// Histograms of gradients, as programs count them and runs tell them.
#pragma once

#include <cstdint>

namespace hydra::support {

/// Outputs of an update begin with it; behind it stands the optimizer group.
inline constexpr const char *kGradHistogram = "grad_histogram.";
/// Count i is that of the gradients whose magnitude is nearest to 2^(kFirstExponent + i), on a
/// logarithmic scale: from 2^-1/2 to 2^1/2 times that. The first one has all smaller ones too, and
/// zeros, the last one all larger ones.
inline constexpr int64_t kFirstExponent = -40, kExponents = 64;

} // namespace hydra::support
