// What a step does whose gradients have a large norm, as programs compute it and runs tell it.
#pragma once

namespace hydra::support {

/// The scalar that is the norm above which a step has a part of its learning rate; 0: none.
inline constexpr const char *kNormSpike = "norm_spike";
/// That part.
inline constexpr double kNormSpikeRate = 0.5;

} // namespace hydra::support
