// Keys, and cuts of their order by histograms of their bits.
#include "runtime/support/Sampling.h"

#include "runtime/support/Philox.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace hydra::support {

namespace {

constexpr uint32_t kNone = ~uint32_t{0}; // no key
constexpr uint32_t kWhole = uint32_t{1} << 31;

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

class Sampler {
public:
  Sampler(std::span<const float> scores, std::span<const uint32_t> seen,
          const SamplingSettings &settings, std::span<uint32_t> keys)
      : scores(scores), seen(seen), settings(settings), keys(keys) {}

  int32_t draw(uint64_t random) {
    if (const std::optional<int32_t> bad = findBest())
      return *bad;
    if (!(settings.temperature > 0))
      return static_cast<int32_t>(best);
    findKeys();
    if (settings.topK >= 1 && settings.topK < static_cast<float>(scores.size()))
      keepFirst(static_cast<uint64_t>(settings.topK));
    if (settings.topP < 1)
      keepPart(fixedPoint(settings.topP, 32));
    if (settings.minP > 0)
      least = static_cast<uint32_t>(fixedPoint(settings.minP, 31));
    return pick(random);
  }

private:
  float penalised(size_t id) const {
    const float score = scores[id] + 0.0F; // no -0
    if (settings.repetitionPenalty == 1 || (seen[id / 32] >> id % 32 & 1) == 0)
      return score;
    return score > 0 ? score / settings.repetitionPenalty : score * settings.repetitionPenalty;
  }

  /// The best id; a number where there is none.
  std::optional<int32_t> findBest() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    highest = -kInfinity;
    for (size_t id = 0; id < scores.size(); ++id) {
      const float score = penalised(id);
      if (!(score < kInfinity))
        return -1 - static_cast<int32_t>(id);
      if (score > highest)
        highest = score, best = id;
    }
    if (highest == -kInfinity)
      return -1;
    return std::nullopt;
  }

  void findKeys() {
    const float inverse = std::min(1.0F / settings.temperature, std::numeric_limits<float>::max());
    for (size_t id = 0; id < scores.size(); ++id) {
      const float distance = (highest - penalised(id)) * inverse;
      keys[id] = distance < 32 ? static_cast<uint32_t>(distance * 0x1p27F) : kNone;
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
      for (const uint32_t key : keys)
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
    cut = {prefix, (target + each - 1) / each};
  }

  void keepFirst(uint64_t count) {
    if (static_cast<uint64_t>(
            std::ranges::count_if(keys, [](uint32_t key) { return key != kNone; })) > count)
      cutAt(count, [](uint32_t) { return uint64_t{1}; });
  }

  void keepPart(uint64_t part) {
    uint64_t sum = cut.ties > 0 ? cut.ties * samplingWeight(cut.key) : 0;
    for (const uint32_t key : keys)
      if (key < cut.key)
        sum += samplingWeight(key);
    const uint64_t low = (sum & 0xffffffff) * part;
    const uint64_t target = (sum >> 32) * part + (low >> 32) + ((low & 0xffffffff) != 0);
    cutAt(std::max<uint64_t>(target, 1),
          [](uint32_t key) { return uint64_t{samplingWeight(key)}; });
  }

  /// visit(id, weight) of those that are kept, in the order of ids, until it says true.
  template <typename Visit> void visitKept(Visit visit) const {
    uint64_t ties = cut.ties;
    for (size_t id = 0; id < keys.size(); ++id) {
      if (keys[id] > cut.key || (keys[id] == cut.key && ties == 0))
        continue;
      ties -= keys[id] == cut.key;
      if (const uint32_t weight = samplingWeight(keys[id]); weight >= least && visit(id, weight))
        return;
    }
  }

  int32_t pick(uint64_t random) const {
    uint64_t sum = 0;
    visitKept([&](size_t, uint32_t weight) { return sum += weight, false; });
    const uint64_t wanted = multiplyHigh(random, sum);
    uint64_t before = 0;
    size_t found = best;
    visitKept([&](size_t id, uint32_t weight) {
      found = id;
      return (before += weight) > wanted;
    });
    return static_cast<int32_t>(found);
  }

  std::span<const float> scores;
  std::span<const uint32_t> seen;
  const SamplingSettings &settings;
  std::span<uint32_t> keys;
  float highest = 0;
  size_t best = 0;
  Cut cut;
  uint32_t least = 0; // weight
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
  return Sampler(scores, seen, settings, keys).draw(random);
}

} // namespace hydra::support
