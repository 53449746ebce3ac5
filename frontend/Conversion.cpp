// What is finite stays finite.
#include "frontend/Conversion.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hydra::frontend {

void writeNumbers(support::DType dtype, std::span<const double> numbers, std::span<std::byte> bytes,
                  std::string_view tensor) {
  support::fromDoubles(dtype, numbers, bytes);
  constexpr size_t kChunk = 4096;
  std::vector<double> held(std::min(kChunk, numbers.size()));
  const size_t size = support::byteSize(dtype);
  for (size_t i = 0; i < numbers.size(); i += kChunk) {
    const auto part = numbers.subspan(i, std::min(kChunk, numbers.size() - i));
    support::toDoubles(dtype, bytes.subspan(i * size, part.size() * size),
                       std::span(held).first(part.size()));
    for (size_t n = 0; n < part.size(); ++n)
      if (std::isfinite(part[n]) && !std::isfinite(held[n]))
        support::fail("tensor '{}' has the number {:g}, which {} cannot hold",
                      support::shown(tensor), part[n], support::safetensorsName(dtype));
  }
}

} // namespace hydra::frontend
