// Threads of this machine, and what its library computes.
#pragma once

#include "compiler/targets/TargetBackend.h"

namespace hydra {

const TargetBackend &cpuBackend();

} // namespace hydra
