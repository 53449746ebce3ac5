// Numbers in the format in which they are written.
#pragma once

#include "runtime/support/DType.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace hydra::frontend {

/// Rounds to nearest. Throws Error that names tensor and number where the format cannot hold a
/// finite one.
void writeNumbers(support::DType dtype, std::span<const double> numbers, std::span<std::byte> bytes,
                  std::string_view tensor);

} // namespace hydra::frontend
