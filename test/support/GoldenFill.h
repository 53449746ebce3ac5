// The deterministic fill of models.md §11.1: parameters and tokens of the golden reference cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hydra::test {

/// The 64-bit mixer (splitmix64 at position i of the sequence that `seed` starts).
constexpr uint64_t mix(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15;
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9;
  z ^= z >> 27;
  z *= 0x94D049BB133111EB;
  return z ^ z >> 31;
}

/// u(seed, i) in [-1, 1), exact in float32.
constexpr double goldenUniform(uint64_t seed, uint64_t i) {
  return static_cast<double>(mix(seed, i) >> 40) * 0x1p-23 - 1.0;
}

/// Fills parameter number `ordinal` (0-based, in the family's order) of family `family` (1 CS336,
/// 2 HYDRA, 3 TTT, 4 Megalodon, 5 Megalodon with SwiGLU): element i, row-major, is
/// base + amp * u(1000 * family + ordinal, i). Float64; the caller rounds to the test's dtype.
inline void fillGolden(std::span<double> out, uint64_t family, uint64_t ordinal, double base,
                       double amp) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = base + amp * goldenUniform(1000 * family + ordinal, i);
}

/// Two [B,S] tensors; labels are the tokens one position later.
struct GoldenTokens {
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;
};

/// Row b at time s, 0 <= s <= S, has the token (mix(99, b*(S+1)+s) >> 33) mod V.
inline GoldenTokens goldenTokens(uint64_t B, uint64_t S, uint64_t V) {
  auto token = [&](uint64_t b, uint64_t s) {
    return static_cast<int32_t>((mix(99, b * (S + 1) + s) >> 33) % V);
  };
  GoldenTokens result;
  for (uint64_t b = 0; b < B; ++b) {
    for (uint64_t s = 0; s < S; ++s) {
      result.tokens.push_back(token(b, s));
      result.labels.push_back(token(b, s + 1));
    }
  }
  return result;
}

} // namespace hydra::test
