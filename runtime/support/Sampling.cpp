// Keys, and cuts of their order by histograms of their bits.
#include "runtime/support/Sampling.h"

#include "runtime/support/Integers.h"
#include "runtime/support/Philox.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace hydra::support {

namespace {

constexpr uint32_t kNone = ~uint32_t{0}; // no key

/// Which ids are kept: those with lower keys, and of those with this one the first.
struct Cut {
  uint32_t key = kNone;
  uint64_t ties = 0;
};

uint64_t multiplyHigh(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}

/// A number in the unit 2^-bits, rounded up, from 0 to 1.
uint64_t fixedPoint(float x, int bits) {
  const float most = std::ldexp(1.0F, bits);
  return static_cast<uint64_t>(std::ceil(std::clamp(x, 0.0F, 1.0F) * most));
}

float scoreOf(uint32_t bits) { return std::bit_cast<float>(bits); }

class Sampler {
public:
  /// `work` holds scores, then keys, then the weights of those that are kept.
  Sampler(const SamplingSettings &settings, std::span<uint32_t> work)
      : settings(settings), work(work) {}

  int32_t draw(std::span<const float> scores, std::span<const uint32_t> seen, uint64_t random) {
    for (size_t id = 0; id < scores.size(); ++id)
      work[id] = std::bit_cast<uint32_t>(scores[id] + 0.0F); // no -0
    if (settings.repetitionPenalty != 1)
      penalise(seen);
    if (const std::optional<int32_t> bad = findHighest())
      return *bad;
    if (!(settings.temperature > 0))
      return static_cast<int32_t>(std::ranges::find(work, std::bit_cast<uint32_t>(highest)) -
                                  work.begin());
    findKeys();
    if (settings.topK >= 1 && settings.topK < static_cast<float>(work.size()))
      keepFirst(static_cast<uint64_t>(settings.topK));
    if (settings.topP < 1)
      keepPart(fixedPoint(settings.topP, 32));
    findWeights();
    return pick(random);
  }

private:
  void penalise(std::span<const uint32_t> seen) {
    const float penalty = settings.repetitionPenalty;
    for (size_t word = 0; word < seen.size(); ++word)
      for (uint32_t bits = seen[word]; bits != 0; bits &= bits - 1) {
        const size_t id = word * 32 + static_cast<size_t>(std::countr_zero(bits));
        if (id >= work.size())
          return;
        const float score = scoreOf(work[id]);
        work[id] = std::bit_cast<uint32_t>((score > 0 ? score / penalty : score * penalty) + 0.0F);
      }
  }

  /// A number where there is none.
  std::optional<int32_t> findHighest() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr size_t kLanes = 16; // side by side, as vectors
    const auto isBad = [](uint32_t bits) { return !(scoreOf(bits) < kInfinity); };
    std::array<float, kLanes> best;
    best.fill(-kInfinity);
    bool anyBad = false;
    const auto meet = [&](size_t id, float &lane) {
      anyBad |= isBad(work[id]);
      lane = lane < scoreOf(work[id]) ? scoreOf(work[id]) : lane;
    };
    const size_t whole = work.size() / kLanes * kLanes;
    for (size_t id = 0; id < whole; id += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane)
        meet(id + lane, best[lane]);
    for (size_t id = whole; id < work.size(); ++id)
      meet(id, best[0]);
    highest = *std::ranges::max_element(best);
    if (anyBad)
      return -1 - static_cast<int32_t>(std::ranges::find_if(work, isBad) - work.begin());
    return highest == -kInfinity ? std::optional(-1) : std::nullopt;
  }

  void findKeys() {
    const float inverse = std::min(1.0F / settings.temperature, std::numeric_limits<float>::max());
    for (uint32_t &place : work) {
      const float distance = (highest - scoreOf(place)) * inverse;
      const float near = distance < 32 ? distance : 0; // what has no key is no number either
      const auto key = static_cast<uint32_t>(static_cast<int64_t>(near * 0x1p27F));
      place = distance < 32 ? key : kNone;
    }
  }

  /// Keeps the first ids that have `target` of something together, which all have.
  template <typename Amount> void cutAt(uint64_t target, Amount amount) {
    uint32_t prefix = 0; // the upper bits of the key
    for (const auto [shift, bits] : {std::pair(21, 11), {10, 11}, {0, 10}}) {
      const uint64_t above = uint64_t{prefix} >> (shift + bits);
      const auto isHere = [&](uint32_t key) { return uint64_t{key} >> (shift + bits) == above; };
      const auto bin = [&](uint32_t key) { return key >> shift & ((1U << bits) - 1); };
      sums.fill(0);
      for (const uint32_t key : work)
        if (key < cut.key && isHere(key))
          sums[bin(key)] += amount(key);
      if (cut.ties > 0 && isHere(cut.key))
        sums[bin(cut.key)] += cut.ties * amount(cut.key);
      uint32_t found = 0;
      while (sums[found] < target)
        target -= sums[found++];
      prefix |= found << shift;
    }
    const uint64_t each = amount(prefix);
    cut = {prefix, ceilDiv(target, each)};
  }

  void keepFirst(uint64_t count) {
    if (static_cast<uint64_t>(
            std::ranges::count_if(work, [](uint32_t key) { return key != kNone; })) > count)
      cutAt(count, [](uint32_t) { return uint64_t{1}; });
  }

  void keepPart(uint64_t part) {
    uint64_t sum = cut.ties > 0 ? cut.ties * samplingWeight(cut.key) : 0;
    for (const uint32_t key : work)
      sum += key < cut.key ? samplingWeight(key) : 0;
    const uint64_t low = (sum & 0xffffffff) * part;
    const uint64_t target = (sum >> 32) * part + (low >> 32) + ((low & 0xffffffff) != 0);
    cutAt(std::max<uint64_t>(target, 1),
          [](uint32_t key) { return uint64_t{samplingWeight(key)}; });
  }

  /// Of those that are kept; 0 of others.
  void findWeights() {
    const auto least = settings.minP > 0 ? static_cast<uint32_t>(fixedPoint(settings.minP, 31)) : 0;
    const auto kept = [&](uint32_t key) {
      const uint32_t weight = samplingWeight(key);
      return weight >= least ? weight : 0;
    };
    uint64_t ties = cut.ties;
    if (ties == 0)
      for (uint32_t &place : work)
        place = place < cut.key ? kept(place) : 0;
    else
      for (uint32_t &place : work) {
        const bool tied = place == cut.key && ties > 0;
        ties -= tied;
        place = tied || place < cut.key ? kept(place) : 0;
      }
  }

  int32_t pick(uint64_t random) const {
    uint64_t sum = 0;
    for (const uint32_t weight : work)
      sum += weight;
    const uint64_t wanted = multiplyHigh(random, sum);
    uint64_t before = 0;
    size_t found = 0;
    while ((before += work[found]) <= wanted)
      ++found;
    return static_cast<int32_t>(found);
  }

  const SamplingSettings &settings;
  std::span<uint32_t> work;
  float highest = 0;
  Cut cut;
  std::array<uint64_t, 2048> sums{};
};

} // namespace

SamplingDraw SamplingDraw::of(uint64_t seed, uint32_t sequence, uint32_t number) {
  const uint64_t key = Philox::keyOf(seed, "generate");
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), sequence, number};
}

uint64_t SamplingDraw::bits() const {
  const auto words = philox4x32({sequence, 0, number, 0}, {keyLow, keyHigh});
  return ((uint64_t{words[1]} << 32 | words[0]) >> 11 | 1) << 11;
}

uint32_t samplingWeight(uint32_t key) {
  // exp(-d) is 2^-n 2^-f; that is 1 - f (c0 - f (c1 - ...)), in units of 2^-32.
  constexpr uint64_t kLog2e = 3098164010; // in units of 2^-31
  constexpr std::array<uint32_t, 7> kTerms = {2977044471, 1031764939, 238387495, 41304489,
                                              5712048,    639488,     48550};
  const uint64_t exponent = key * kLog2e; // in units of 2^-58
  const auto whole = static_cast<uint32_t>(exponent >> 58);
  if (whole > 32)
    return 0;
  const uint64_t fraction = exponent >> 26 & 0xffffffff;
  uint64_t sum = kTerms[6];
  for (int i = 5; i >= 0; --i)
    sum = kTerms[static_cast<size_t>(i)] - (fraction * sum >> 32);
  const uint64_t mantissa = (uint64_t{1} << 32) - (fraction * sum >> 32);
  return static_cast<uint32_t>((mantissa + (uint64_t{1} << whole)) >> (whole + 1));
}

void markSeen(std::span<uint32_t> seen, int64_t ids, int32_t id) {
  if (id >= 0 && id < ids)
    seen[static_cast<size_t>(id / 32)] |= uint32_t{1} << id % 32;
}

int32_t sampleToken(std::span<const float> scores, std::span<const uint32_t> seen,
                    const SamplingSettings &settings, uint64_t random, std::span<uint32_t> keys) {
  return Sampler(settings, keys).draw(scores, seen, random);
}

} // namespace hydra::support
