// Limits of what a model may have.
#pragma once

#include <cstdint>

namespace hydra {

/// Elements of a stack.
inline constexpr int64_t kMostLayers = 1024;

} // namespace hydra
