// Uniform numbers of many elements, of which a vector register holds several.
//
// 10 rounds of two 32-bit products each, no traffic but the results. Words lie in lanes of 64 bits,
// where a product has its room: 1.9 ns a number on a core with AVX-512, 2.6 with AVX2, against 8.5
// one by one.
#include "runtime/support/Philox.h"

#include "runtime/support/CpuLevel.h"

#pragma STDC FP_CONTRACT OFF

namespace hydra::support {

namespace {

/// 32-bit words in numbers of 64 bits.
struct PhiloxLanes {
  static constexpr uint64_t mask = 0xffffffff;
  static constexpr uint64_t constant(uint32_t bits) { return bits; }
  static constexpr uint64_t low(uint64_t a, uint64_t b) { return a * b & mask; }
  static constexpr uint64_t high(uint64_t a, uint64_t b) { return a * b >> 32; }
  static constexpr uint64_t add(uint64_t a, uint64_t b) { return (a + b) & mask; }
  static constexpr uint64_t exclusiveOr(uint64_t a, uint64_t b) { return a ^ b; }
};

[[gnu::always_inline]] inline void uniformNumbers(uint64_t key, uint64_t step, uint64_t first,
                                                  double *out, size_t count) {
  constexpr uint64_t mask = PhiloxLanes::mask;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t index = first + i;
    const std::array<uint64_t, 4> words =
        philoxRounds<uint64_t>({index & mask, index >> 32, step & mask, step >> 32},
                               {key & mask, key >> 32}, kPhiloxRounds, PhiloxLanes());
    out[i] = Philox::uniformOf(words[1] << 32 | words[0]);
  }
}

} // namespace

void Philox::uniform53(uint64_t first, std::span<double> out) const {
  forCpuLevel<uniformNumbers>(key, step, first, out.data(), out.size());
}

} // namespace hydra::support
