// Which token is drawn, from scores and what restricts the choice.
#include "runtime/support/Sampling.h"

#include "runtime/support/Philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

using namespace hydra::support;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

const std::vector<float> scores = {std::log(0.1F), std::log(0.4F), std::log(0.05F), std::log(0.3F),
                                   std::log(0.15F)};

/// By a number in [0, 1).
int32_t sample(const std::vector<float> &scores, const SamplingSettings &settings,
               const std::vector<int32_t> &text, double u) {
  std::vector<uint32_t> seen(seenWords(static_cast<int64_t>(scores.size()))), keys(scores.size());
  for (const int32_t id : text)
    markSeen(seen, static_cast<int64_t>(scores.size()), id);
  return sampleToken(scores, seen, settings, static_cast<uint64_t>(u * 0x1p53) << 11, keys);
}

using Counts = std::map<int32_t, int>;

/// How often each id comes, of 10,000 equally spaced numbers.
Counts counts(const SamplingSettings &settings, const std::vector<int32_t> &text = {}) {
  Counts found;
  for (int i = 0; i < 10000; ++i)
    ++found[sample(scores, settings, text, (i + 0.5) / 10000)];
  return found;
}

/// The parts of [0, 1) that ids have, in their order, in float64 and by sorting.
struct Reference {
  std::vector<int32_t> ids;
  std::vector<double> ends; // of their parts
  double margin = 1;        // how near a cut is to another one, in probability

  Reference(const std::vector<float> &given, const SamplingSettings &s,
            const std::vector<int32_t> &text) {
    std::vector<double> x(given.begin(), given.end()), weight;
    for (size_t id = 0; id < x.size(); ++id)
      if (std::ranges::find(text, static_cast<int32_t>(id)) != text.end())
        x[id] = x[id] > 0 ? x[id] / s.repetitionPenalty : x[id] * s.repetitionPenalty;
    const double best = *std::ranges::max_element(x);
    for (const double score : x)
      weight.push_back(std::exp((score - best) / s.temperature));
    ids.resize(x.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::ranges::stable_sort(ids, [&](int32_t a, int32_t b) { return x[a] > x[b]; });
    if (s.topK >= 1 && s.topK < static_cast<float>(ids.size())) {
      const auto k = static_cast<size_t>(s.topK);
      const double gap = x[ids[k - 1]] - x[ids[k]];
      if (gap > 0)
        margin = std::min(margin, gap);
      ids.resize(k);
    }
    if (s.topP < 1) {
      double all = 0, sum = 0;
      for (const int32_t id : ids)
        all += weight[id];
      size_t count = 0;
      while (count < ids.size() && (count == 0 || sum < s.topP * all)) {
        if (count > 0)
          margin = std::min(margin, std::abs(sum / all - s.topP));
        sum += weight[ids[count++]];
      }
      margin = std::min(margin, std::abs(sum / all - s.topP));
      ids.resize(count);
    }
    std::erase_if(ids, [&](int32_t id) {
      if (s.minP > 0)
        margin = std::min(margin, std::abs(weight[id] - s.minP));
      return weight[id] < s.minP;
    });
    std::ranges::sort(ids);
    double sum = 0;
    for (const int32_t id : ids)
      ends.push_back(sum += weight[id]);
    for (double &end : ends)
      end /= sum;
  }
};

} // namespace

TEST(Sampling, ByProbability) {
  EXPECT_EQ(counts({}), (Counts{{0, 1000}, {1, 4000}, {2, 500}, {3, 3000}, {4, 1500}}));
}

TEST(Sampling, TemperatureZeroTakesTheBestAndTheLowestIdAmongEquals) {
  EXPECT_EQ(counts({.temperature = 0}), (Counts{{1, 10000}}));
  EXPECT_EQ(sample({1, 2, 2}, {.temperature = 0}, {}, 0.9), 1);
  EXPECT_EQ(sample({-0.0F, 0, -0.0F}, {.temperature = 0}, {}, 0.9), 0);
}

TEST(Sampling, TemperatureDividesScores) {
  // Squares of the probabilities: 0.01, 0.16, 0.0025, 0.09, 0.0225, together 0.285.
  const Counts found = counts({.temperature = 0.5});
  EXPECT_NEAR(found.at(1), 10000 * 0.16 / 0.285, 1);
  EXPECT_NEAR(found.at(2), 10000 * 0.0025 / 0.285, 1);
  EXPECT_EQ(counts({.temperature = 1e-30F}), (Counts{{1, 10000}}));
  EXPECT_EQ(counts({.temperature = 1e-45F}), (Counts{{1, 10000}}));
  EXPECT_NEAR(counts({.temperature = 1e30F}).at(2), 2000, 1);
}

TEST(Sampling, TheKBest) {
  EXPECT_EQ(counts({.topK = 1}), (Counts{{1, 10000}}));
  const Counts found = counts({.topK = 2});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(3), 10000 * 3 / 7.0, 1);
  EXPECT_EQ(counts({.topK = 9}), counts({}));
}

TEST(Sampling, TheBestThatHaveAProbabilityTogether) {
  EXPECT_EQ(counts({.topP = 1e-30F}).size(), 1u);
  EXPECT_EQ(counts({.topP = 0.39F}).size(), 1u);
  EXPECT_EQ(counts({.topP = 0.41F}).size(), 2u); // the one that reaches it belongs to them
  EXPECT_EQ(counts({.topP = 0.84F}).size(), 3u);
  EXPECT_EQ(counts({.topP = 1.0F}), counts({}));
  EXPECT_EQ(counts({.topK = 2, .topP = 0.6F}).size(), 2u); // of the probability of these two
  EXPECT_EQ(counts({.topK = 2, .topP = 0.57F}).size(), 1u);
}

TEST(Sampling, ThoseWithAPartOfTheBestOnesProbability) {
  EXPECT_EQ(counts({.minP = 0.3F}).size(), 3u);
  EXPECT_EQ(counts({.minP = 1.0F}), (Counts{{1, 10000}}));
}

TEST(Sampling, WhatTheTextHasIsPenalised) {
  // All scores are negative: multiplied.
  EXPECT_EQ(counts({.temperature = 0, .repetitionPenalty = 1000}, {1, 1}), (Counts{{3, 10000}}));
  EXPECT_EQ(sample({2, 3}, {.temperature = 0, .repetitionPenalty = 2}, {1}, 0), 0);
}

TEST(Sampling, OfEqualScoresTheLowerIdsAreKept) {
  const std::vector<float> equal(1000, 0.5F);
  for (const float k : {1.0F, 7.0F, 999.0F}) {
    EXPECT_EQ(sample(equal, {.topK = k}, {}, 0.0), 0);
    EXPECT_EQ(sample(equal, {.topK = k}, {}, 0.999999), k - 1);
  }
  EXPECT_EQ(sample(equal, {.topP = 0.25F}, {}, 0.999999), 249);
  EXPECT_EQ(sample(equal, {.topK = 100, .topP = 0.25F}, {}, 0.999999), 24);
  EXPECT_EQ(sample(equal, {.topK = 100, .topP = 0.25F, .minP = 1}, {}, 0.999999), 24);
}

TEST(Sampling, WhatCannotBeDrawn) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> one(300, -kInfinity);
  one[217] = -5;
  for (const SamplingSettings &s :
       {SamplingSettings{}, {.temperature = 0}, {.topK = 3}, {.topP = 0.1F}, {.minP = 0.5F}})
    for (const double u : {0.0, 0.5, 0.999999})
      EXPECT_EQ(sample(one, s, {217, 3}, u), 217);
  EXPECT_EQ(sample(std::vector<float>(9, -kInfinity), {}, {}, 0.5), -1);
  EXPECT_EQ(sample({1, 2, nan, 3, nan}, {}, {}, 0.5), -3);
  EXPECT_EQ(sample({1, kInfinity, 2}, {.temperature = 0}, {}, 0.5), -2);
}

TEST(Sampling, ManyIdsInOrder) {
  std::vector<float> many(100000);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<float>(i % 1000) * 1e-3F;
  const SamplingSettings narrow{.topP = 0.5F};
  const int32_t first = sample(many, narrow, {}, 0.0), last = sample(many, narrow, {}, 0.9999999);
  EXPECT_GT(many[static_cast<size_t>(first)], 0.5); // the lowest id of those that are kept
  EXPECT_LT(first, 700);
  EXPECT_EQ(last, 99999);
}

TEST(Sampling, WeightsAreThoseOfTheExponential) {
  EXPECT_EQ(samplingWeight(0), uint32_t{1} << 31);
  EXPECT_EQ(samplingWeight(~uint32_t{0}), 0u);
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto key = static_cast<uint32_t>(random());
    ASSERT_NEAR(samplingWeight(key), 0x1p31 * std::exp(-0x1p-27 * key), 2.5) << key;
    ASSERT_GE(samplingWeight(key - (key > 0)), samplingWeight(key)) << key;
  }
}

// All settings together, with scores that often are equal, against float64.
TEST(Sampling, AgreesWithFloat64) {
  std::mt19937 random(7);
  const auto draw = [&](uint32_t limit) { return random() % limit; };
  const auto pick = [&](std::initializer_list<float> of) { return of.begin()[draw(of.size())]; };
  int compared = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<float> x(1 + draw(draw(4) ? 300 : 5000));
    const float step = pick({0, 0.25F, 1});
    std::normal_distribution<float> normal(0, pick({0.1F, 1, 4}));
    for (float &score : x) {
      score = normal(random);
      score = step > 0 ? std::round(score / step) * step : score;
      score = draw(20) ? score : -kInfinity;
    }
    x[draw(x.size())] = 1;
    std::vector<int32_t> text;
    for (uint32_t i = draw(20); i > 0; --i)
      text.push_back(static_cast<int32_t>(draw(x.size())));
    const SamplingSettings settings{pick({0.25F, 0.8F, 1, 1.5F, 100}), pick({0, 1, 2, 17, 200}),
                                    pick({1, 0.001F, 0.3F, 0.9F, 0.999F}),
                                    pick({0, 0.02F, 0.5F, 1}), pick({1, 1.3F, 50})};
    const Reference wanted(x, settings, text);
    if (wanted.margin < 1e-5)
      continue; // a cut goes through what float32 does not tell apart
    for (int i = 0; i < 20; ++i) {
      const double u = std::generate_canonical<double, 53>(random);
      const auto at =
          static_cast<size_t>(std::ranges::upper_bound(wanted.ends, u) - wanted.ends.begin());
      if (std::abs(u - wanted.ends[at]) < 1e-5 || (at > 0 && u - wanted.ends[at - 1] < 1e-5))
        continue;
      ASSERT_EQ(sample(x, settings, text, u), wanted.ids[at])
          << "round " << round << ": " << x.size() << " ids, temperature " << settings.temperature
          << " k " << settings.topK << " p " << settings.topP << " min-p " << settings.minP
          << " penalty " << settings.repetitionPenalty << " u " << u;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20000);
}

TEST(Sampling, RandomNumbersAreThoseOfTheirStream) {
  for (const uint64_t seed : {0ull, 3ull, 123456789123456789ull})
    for (const uint32_t number : {0u, 1u, 77u})
      for (const uint32_t sequence : {0u, 5u})
        EXPECT_EQ(static_cast<double>(SamplingDraw::of(seed, sequence, number).bits()) * 0x1p-64,
                  Philox(seed, "generate", number).uniform53(sequence));
}
