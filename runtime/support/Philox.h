// Counter-based random numbers: Philox4x32-10, keyed by seed and name, indexed by step and element.
//
// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Element i of
// a stream is a pure function of (seed, name, step, i), so that host, device and every shard of a
// tensor draw the same numbers, and the only state to checkpoint is the seed and the step.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <xxhash.h>

namespace hydra::support {

/// The bijection itself: 4 random words from a 4-word counter and a 2-word key.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// The stream of one name (a parameter, a dropout site) at one step.
/// Key = seed xor XXH3_64bits(name), counter = (element, step); low words first.
class Philox {
public:
  Philox(uint64_t seed, std::string_view name, uint64_t step = 0)
      : key(keyOf(seed, name)), step(step) {}

  static uint64_t keyOf(uint64_t seed, std::string_view name) {
    return seed ^ XXH3_64bits(name.data(), name.size());
  }

  /// The four random words of element `index`.
  std::array<uint32_t, 4> block(uint64_t index) const {
    return philox4x32({low(index), high(index), low(step), high(step)}, {low(key), high(key)});
  }

  /// Words 0 and 1 of element `index` as one number.
  uint64_t bits64(uint64_t index) const {
    const std::array<uint32_t, 4> words = block(index);
    return uint64_t{words[1]} << 32 | words[0];
  }

  /// A uniform number in the open interval (0,1): k * 2^-53, where k is the upper 53 bits of
  /// bits64 with the last one set. So neither 0 nor 1 occurs, the mean is exactly 1/2, and 1 - u
  /// is exact.
  double uniform53(uint64_t index) const {
    return static_cast<double>(bits64(index) >> 11 | 1) * 0x1p-53;
  }

private:
  static constexpr uint32_t low(uint64_t word) { return static_cast<uint32_t>(word); }
  static constexpr uint32_t high(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

  uint64_t key;
  uint64_t step;
};

} // namespace hydra::support
