// One id drawn from the scores of all: what `hydra.sample` means, to the last bit.
//
// Sums over a vocabulary are of integers, so they are the same in any order: of one thread or of
// many, on a CPU or on a GPU (compiler/codegen/cuda/templates/sample.cuh computes the same).
//
// * A score is f32. That of an id that the sequence has is divided by the penalty where it is
//   positive, else multiplied; -0 counts as 0.
// * The distance of an id from the highest score is (highest - score) * (1 / temperature), in f32.
//   Its key is that in units of 2^-27, rounded down. From 32 on an id has no key: its weight is 0.
// * Ids are in the order of their keys, of equal ones the lower first.
// * The weight of an id is exp(-distance) in units of 2^-31, from 0 to 2^31, a function of the key.
// * top-k keeps the first k; top-p of them the first whose weights are together at least the part p
//   of the sum, but one; min-p those with at least so much of 2^31.
// * The number 0.k of 53 random bits, the last of them set, times the sum of the weights kept,
//   rounded down, is less than exactly one id's sum of weights up to it and not less than the one
//   before it, in the order of ids: that id is drawn.
#pragma once

#include <cstdint>
#include <span>

namespace hydra::support {

/// A row of the operand `settings`.
struct SamplingSettings {
  float temperature = 1; ///< 0: always the best, the lowest id among equals
  float topK = 0;        ///< 0: all
  float topP = 1, minP = 0, repetitionPenalty = 1;
};

/// A row of the operand `draw`: the words of Philox.
struct SamplingDraw {
  uint32_t keyLow = 0, keyHigh = 0, sequence = 0, number = 0;

  /// For the stream of a name (Philox.h).
  static SamplingDraw of(uint64_t seed, uint32_t sequence, uint32_t number);
  /// 53 random bits, the last of them set, from the upper end.
  uint64_t bits() const;
};

/// The weight of a key.
uint32_t samplingWeight(uint32_t key);

/// How many words of 32 ids have a bit for each of them.
constexpr int64_t seenWords(int64_t ids) { return (ids + 31) / 32; }
/// Sets the bit of an id; of others than [0, ids) none.
void markSeen(std::span<uint32_t> seen, int64_t ids, int32_t id);

/// The id that `random` (SamplingDraw::bits) draws. `seen`: a bit for each id that the sequence
/// has. `keys` is working memory, as long as the scores. Where a score is NaN or +inf: -1 - i of
/// the first such id i; where all are -inf: -1.
int32_t sampleToken(std::span<const float> scores, std::span<const uint32_t> seen,
                    const SamplingSettings &settings, uint64_t random, std::span<uint32_t> keys);

} // namespace hydra::support
