// What copy engines of GPUs move between ranks.
#pragma once

#include <cstdint>

namespace hydra::support {

/// Bytes that a rank sends and receives in one collective from which on copy engines of a GPU move
/// them. They begin some 40 us later than kernels do, and take no multiprocessors from what
/// computes meanwhile.
inline constexpr uint64_t kEngineBytes = uint64_t{4} << 20;

} // namespace hydra::support
