// What the machine code of a GPU kernel takes, read from its ELF file.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace hydra::inspect {

struct KernelResources {
  uint32_t registers = 0;  ///< of a thread, of 4 bytes each
  uint32_t stackBytes = 0; ///< of a thread, in local memory: mostly registers that did not fit
};

/// Of each kernel of a plan; nothing where its code is not for GPUs, or damaged.
std::vector<std::optional<KernelResources>> resourcesOf(const planfile::Plan &plan);

} // namespace hydra::inspect
