// What a launch of a kernel can be given.
#pragma once

#include <cstddef>

namespace hydra::support {

/// Pointers of a launch at most: 4 KiB, which every architecture takes.
inline constexpr size_t kMostKernelArguments = 512;

} // namespace hydra::support
