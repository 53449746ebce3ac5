// Weights in 8 bits: each row as integers and one number that all of them are multiplied by.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace hydra::support {

/// The largest magnitude of an integer in a row: symmetric, so that no number is -128.
inline constexpr float kMostInt8 = 127.0F;

/// out[i] = row[i] / scale to nearest, ties to even, with the largest magnitude of the row at
/// kMostInt8. Returns the scale, of which out[i] * scale is at most half a scale from row[i]. A row
/// of zeros, or of numbers so small that the scale would be subnormal, is zeros. In a row that has
/// an infinity or a NaN the scale is NaN, so that what it is multiplied with is NaN too. `out` has
/// the size of `row`.
inline float quantizeRow(std::span<const float> row, std::span<int8_t> out) {
  float largest = 0.0F;
  bool finite = true;
  for (float x : row) {
    finite = finite && std::isfinite(x);
    largest = std::max(largest, std::abs(x));
  }
  const float scale = largest / kMostInt8;
  if (!finite || scale < std::numeric_limits<float>::min()) {
    std::ranges::fill(out, int8_t{0});
    return finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
  std::ranges::transform(row, out.begin(), [scale](float x) {
    return static_cast<int8_t>(std::nearbyint(std::clamp(x / scale, -kMostInt8, kMostInt8)));
  });
  return scale;
}

} // namespace hydra::support
