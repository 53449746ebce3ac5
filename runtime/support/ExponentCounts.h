// Which power of two a number is nearest to: what `hydra.count_exponents` means, to the last bit.
//
// compiler/codegen/cuda/templates/counting.cuh computes the same.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace hydra::support {

/// The exponents that counters may have, and so how many there are at most.
inline constexpr int64_t kLeastExponent = -126, kMostExponent = 127;
inline constexpr int64_t kMostExponents = kMostExponent - kLeastExponent + 1;

/// Of `count` counters, of which number i is for the exponent first + i, that of x: the exponent of
/// two of |x|, rounded to nearest (2^(e - 1/2) < |x| < 2^(e + 1/2)). The first one has all smaller
/// numbers, zeros and what is no number, the last one all larger numbers and infinities.
/// kLeastExponent <= first, first + count - 1 <= kMostExponent.
inline int64_t exponentCounter(float x, int64_t first, int64_t count) {
  constexpr uint32_t infinity = 0x7f800000, one = 0x3f800000;
  constexpr uint32_t pastRootOfTwo = 0x3fb504f4; // the first number above the square root of two
  constexpr int mantissa = 23, bias = 127;
  const uint32_t bits = std::bit_cast<uint32_t>(x) & ~(uint32_t{1} << 31);
  if (bits > infinity)
    return 0;
  // From there on a mantissa carries over into the exponent.
  const uint32_t rounded = bits + ((one + (uint32_t{1} << mantissa)) - pastRootOfTwo);
  return std::clamp<int64_t>(int64_t{rounded >> mantissa} - bias - first, 0, count - 1);
}

} // namespace hydra::support
