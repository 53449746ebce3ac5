// What outputs of programs are called that mean something to a run.
#pragma once

namespace hydra::support {

/// The scalar that a model is trained by: an entry returns it under this name.
inline constexpr const char *kLossOutput = "loss";
/// Of a program that updates: the norm of all gradients, and whether the update was applied, 1 or
/// 0.
inline constexpr const char *kGradNormOutput = "grad_norm";
inline constexpr const char *kAppliedOutput = "applied";

} // namespace hydra::support
