// Which losses a step may have, as programs take it and runs give it.
#pragma once

namespace hydra::support {

/// The scalar above which the loss of a step lets it change nothing; 0: none.
inline constexpr const char *kLossLimit = "loss_limit";

} // namespace hydra::support
