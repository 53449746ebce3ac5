// GPUs of NVIDIA.
#pragma once

#include "compiler/targets/TargetBackend.h"

namespace hydra {

const TargetBackend &cudaBackend();

} // namespace hydra
