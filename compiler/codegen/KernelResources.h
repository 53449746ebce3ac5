// What kernels for a GPU take, and what their assembler warns of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hydra {

/// Of a kernel. Spills are registers that did not fit: the stores and loads of a thread that the
/// code has for them, each counted once, in bytes.
struct KernelResources {
  uint32_t registers = 0;  ///< of a thread, of 4 bytes each
  uint32_t stackBytes = 0; ///< of a thread, in local memory
  uint32_t spillStores = 0, spillLoads = 0;
  uint32_t sharedBytes = 0; ///< of a block; without what a launch asks for
  std::vector<std::string> warnings;

  bool spills() const { return spillStores > 0 || spillLoads > 0; }
};

} // namespace hydra
