// Which linear layers are faster in 8 bits, their casts included.
#pragma once

#include "tools/hydrac/Options.h"

#include <string>

namespace hydra {

/// Where the flags say `--fp8-keep=auto`, gives them the parameters whose linear layers stay in
/// bf16 beside those that do by default. A layer of all elements of a stack (`layers.*.wo`) is left
/// in bf16 alone first; those whose step is then predicted to be shorter are left together, the
/// one that gains most first, as long as the step becomes shorter. Lowers the model once for each
/// layer, and once more for each that gains. With --recompute=auto plans are compared as that
/// chooses them, and both choices are made for each other, at most three times. Returns one line that says what was chosen, empty
/// where nothing was to be. Throws support::Error where nothing is predicted, the model has no
/// plan, or the step in bf16 is predicted to be no longer.
std::string chooseFasterLayers(HydracOptions &options);

} // namespace hydra
