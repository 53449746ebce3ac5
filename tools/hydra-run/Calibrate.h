// hydra-run --calibrate
#pragma once

#include "tools/hydra-run/Options.h"

namespace hydra {

/// Times the plans on this machine, and writes the description of a target with what was measured.
void calibrate(const RunOptions &options);

} // namespace hydra
