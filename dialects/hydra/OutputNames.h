// What outputs of programs are called that mean something to a run, as passes write and read them.
#pragma once

#include "runtime/support/OutputNames.h"

namespace hydra {

using support::kAppliedOutput;
using support::kGradNormOutput;
using support::kLossLabelsOutput;
using support::kLossOutput;
using support::kLossSumOutput;

} // namespace hydra
