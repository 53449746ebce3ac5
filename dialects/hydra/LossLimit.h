// Which losses a step may have, as passes write it into programs.
#pragma once

#include "runtime/support/LossLimit.h"

namespace hydra {

using support::kLossLimit;

} // namespace hydra
