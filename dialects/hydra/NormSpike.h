// What a step does whose gradients have a large norm, as passes write it into programs.
#pragma once

#include "runtime/support/NormSpike.h"

namespace hydra {

using support::kNormSpike;
using support::kNormSpikeRate;

} // namespace hydra
