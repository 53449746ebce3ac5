// A float in two halves: what it is in bf16, and the rest.
#pragma once

#include <bit>
#include <cstdint>

namespace hydra::support {

/// The bf16 nearest to a float, of two at the same distance the one farther from zero, and what has
/// to be added to its bits, followed by 16 zeros, to have those of the float. Rounding to even
/// would not do: from an even bf16 both distances of half a unit would be the same 16 bits.
struct SplitFloat {
  uint16_t high = 0; ///< the bits of the bf16
  int16_t rest = 0;
};

/// Every number and infinity can be made again of its halves; of any NaN they are those of one NaN.
inline SplitFloat splitFloat(float x) {
  constexpr uint32_t kNan = 0x7fc00000;
  const uint32_t bits = x == x ? std::bit_cast<uint32_t>(x) : kNan;
  return {static_cast<uint16_t>((bits + 0x8000) >> 16), static_cast<int16_t>(bits & 0xffff)};
}

inline float joinFloat(SplitFloat halves) {
  return std::bit_cast<float>((static_cast<uint32_t>(halves.high) << 16) +
                              static_cast<uint32_t>(int32_t{halves.rest}));
}

} // namespace hydra::support
