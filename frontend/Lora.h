// Adapters in files of Hydra's: which tensors they are, and what they add to a parameter.
#pragma once

#include "runtime/support/Safetensors.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::frontend {

/// The two matrices beside one [N, K]: A [R, K] and B [N, R]. Beside those of E experts, [E, N, K],
/// [E, R, K] and [E, N, R].
struct LowRank {
  const support::TensorPlace *a, *b;
};

/// The adapters of one file.
class Adapters {
public:
  /// Throws Error for one of two matrices, shapes that do not fit, and a file that does not say by
  /// what their product is multiplied.
  explicit Adapters(const support::SafetensorsFile &file);

  bool any() const { return count > 0; }
  int64_t rank() const { return scaleRank; }
  double alpha() const { return scaleAlpha; }
  /// Those beside a parameter, or nothing.
  std::optional<LowRank> of(std::string_view parameter) const;
  /// Whether a tensor is one.
  bool isPart(std::string_view tensor) const;
  /// W + alpha / rank B A of the matrix of that number, of one 0, in `dtype`, row-major. A whole
  /// matrix is in memory. Throws Error where the format cannot hold a number.
  std::vector<std::byte> merged(const support::TensorPlace &weight, uint64_t number,
                                support::DType dtype) const;

private:
  const support::SafetensorsFile &file;
  size_t count = 0;
  int64_t scaleRank = 0;
  double scaleAlpha = 0.0;
};

} // namespace hydra::frontend
