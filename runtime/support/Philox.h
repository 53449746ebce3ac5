// Counter-based random numbers: Philox4x32-10, keyed by seed and name, indexed by step and element.
//
// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Element i of
// a stream is a pure function of (seed, name, step, i), so that host, device and every shard of a
// tensor draw the same numbers, and the only state to checkpoint is the seed and the step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <xxhash.h>

namespace hydra::support {

/// The bijection itself over any kind of words: 4 random ones from a 4-word counter and a 2-word
/// key. `on` computes with them: constant(bits), low and high half of a product, add, exclusiveOr.
/// Inlined, so that loops over counters become vectors.
template <typename Word, typename Arithmetic>
[[gnu::always_inline]] constexpr std::array<Word, 4>
philoxRounds(std::array<Word, 4> counter, std::array<Word, 2> key, int rounds,
             const Arithmetic &on) {
  const Word factor0 = on.constant(0xD2511F53), factor1 = on.constant(0xCD9E8D57);
  const Word step0 = on.constant(0x9E3779B9), step1 = on.constant(0xBB67AE85);
  for (int round = 0; round < rounds; ++round) {
    const Word high0 = on.high(factor0, counter[0]), low0 = on.low(factor0, counter[0]);
    const Word high1 = on.high(factor1, counter[2]), low1 = on.low(factor1, counter[2]);
    counter = {on.exclusiveOr(on.exclusiveOr(high1, counter[1]), key[0]), low1,
               on.exclusiveOr(on.exclusiveOr(high0, counter[3]), key[1]), low0};
    key = {on.add(key[0], step0), on.add(key[1], step1)};
  }
  return counter;
}

/// Words of this machine.
struct PhiloxWords {
  static constexpr uint32_t constant(uint32_t bits) { return bits; }
  static constexpr uint32_t low(uint32_t a, uint32_t b) { return a * b; }
  static constexpr uint32_t high(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(uint64_t{a} * b >> 32);
  }
  static constexpr uint32_t add(uint32_t a, uint32_t b) { return a + b; }
  static constexpr uint32_t exclusiveOr(uint32_t a, uint32_t b) { return a ^ b; }
};

/// Rounds with a margin of safety, and the fewest with which the generator passes all of TestU01's
/// BigCrush (Salmon et al., section 5).
inline constexpr int kPhiloxRounds = 10, kFewestPhiloxRounds = 7;

constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key,
                                             int rounds = kPhiloxRounds) {
  return philoxRounds(counter, key, rounds, PhiloxWords());
}

/// The stream of one name (a parameter, the masks of dropout) at one step.
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
  double uniform53(uint64_t index) const { return uniformOf(bits64(index)); }
  /// The same of elements `first` and on, several at a time.
  void uniform53(uint64_t first, std::span<double> out) const;
  /// The number that bits64 gives.
  static constexpr double uniformOf(uint64_t bits) {
    return static_cast<double>(bits >> 11 | 1) * 0x1p-53;
  }

private:
  static constexpr uint32_t low(uint64_t word) { return static_cast<uint32_t>(word); }
  static constexpr uint32_t high(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

  uint64_t key;
  uint64_t step;
};

} // namespace hydra::support
