// Weights in 4 bits: numbers of a row in groups of 32, each as integers and one number that all of
// them are multiplied by.
#pragma once

#include "runtime/support/DType.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace hydra::support {

/// Neighbours in a row that share a scale.
inline constexpr int64_t kInt4Group = 32;
/// Bytes of a group. Byte i has number i in its lower four bits, as itself plus 8, and number
/// i + kInt4Bytes in its upper four, as it is: as an integer, the byte is 16 times the latter plus
/// the former.
inline constexpr int64_t kInt4Bytes = kInt4Group / 2;

/// The numbers of a byte, from -8 to 7: of the first half of a group, and of the second.
struct Int4Pair {
  int first = 0, second = 0;
};
constexpr Int4Pair unpackInt4(int8_t byte) { return {(byte & 15) - 8, byte >> 4}; }
constexpr int8_t packInt4(Int4Pair numbers) {
  return static_cast<int8_t>(16 * numbers.second + numbers.first + 8);
}

/// A group of numbers as integers, and the sum of squares of what that changes, in scales.
struct Int4Group {
  std::array<float, kInt4Group> integers = {};
  float error = 0.0F;

  /// numbers[i] times `inverse` to nearest, ties to even, and no integer beyond -8 and 7.
  Int4Group(std::span<const float> numbers, float inverse) {
    constexpr float shift = 0x1.8p23F; // of a sum with it nothing is left behind the point
    for (size_t i = 0; i < numbers.size(); ++i) {
      const float x = numbers[i] * inverse;
      integers[i] = std::clamp(x, -8.0F, 7.0F) + shift - shift;
      error += (x - integers[i]) * (x - integers[i]);
    }
  }

  void pack(std::span<int8_t> bytes) const {
    for (size_t i = 0; i < kInt4Bytes; ++i)
      bytes[i] =
          packInt4({static_cast<int>(integers[i]), static_cast<int>(integers[i + kInt4Bytes])});
  }
};

/// Rounds kInt4Group numbers to kInt4Bytes bytes. Returns the scale, in bf16 and with four bits at
/// most, so that bf16 and f16 have all products with integers: of those, positive or negative, by
/// which the largest magnitude is 6 to 8.5, the one that changes the group least (of several the
/// smallest, and the positive one). A group of zeros, or of numbers so small that its scale would
/// be subnormal, is zeros. The scale of one that has an infinity or a NaN is NaN.
inline uint16_t quantizeGroup(std::span<const float> numbers, std::span<int8_t> bytes) {
  float largest = 0.0F;
  bool finite = true;
  for (const float x : numbers) {
    finite = finite && std::isfinite(x);
    largest = std::max(largest, std::abs(x));
  }
  const float least = largest / 8.5F, most = largest / 6.0F;
  if (!finite || least < std::numeric_limits<float>::min()) {
    std::ranges::fill(bytes, packInt4({0, 0}));
    return bf16FromDouble(finite ? 0.0 : std::numeric_limits<double>::quiet_NaN());
  }
  int exponent = 0;
  const float fraction = std::frexp(least, &exponent); // from 1/2 to 1
  float scale = 0.0F, error = std::numeric_limits<float>::infinity();
  for (int bits = static_cast<int>(std::ceil(16.0F * fraction));; bits += bits < 16 ? 1 : 2) {
    const float size = std::ldexp(static_cast<float>(bits), exponent - 4);
    if (size > most)
      return bf16FromDouble(scale);
    for (const float one : {size, -size}) {
      const Int4Group group(numbers, 1.0F / one);
      const float all = group.error * static_cast<float>(bits * bits);
      if (all >= error)
        continue;
      error = all;
      scale = one;
      group.pack(bytes);
    }
  }
}

} // namespace hydra::support
