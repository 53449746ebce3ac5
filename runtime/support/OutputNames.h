// What outputs of programs are called that mean something to a run.
#pragma once

namespace hydra::support {

/// The scalar that a model is trained by: an entry returns it under this name.
inline constexpr const char *kLossOutput = "loss";
/// Of a program that updates: the norm of all gradients, and whether the update was applied, 1 or
/// 0.
inline constexpr const char *kGradNormOutput = "grad_norm";
inline constexpr const char *kAppliedOutput = "applied";
/// Of a program that several ranks run for each micro-batch: the sum of the losses of its step so
/// far, added up rank by rank as micro-batches on one rank are.
inline constexpr const char *kLossSumOutput = "loss_sum";
/// Of a program that measures a loss over labels which it makes itself: how many of them count, by
/// which losses of several batches are weighed.
inline constexpr const char *kLossLabelsOutput = "loss_labels";

} // namespace hydra::support
