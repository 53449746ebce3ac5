// Which token is chosen, from scores and what restricts the choice.
#include "runtime/run/Sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

using namespace hydra::runtime;

namespace {

const std::vector<double> scores = {std::log(0.1), std::log(0.4), std::log(0.05), std::log(0.3),
                                    std::log(0.15)};

/// How often each id comes, of 10,000 equally spaced `u`.
std::map<int32_t, int> counts(const SamplingOptions &options, std::vector<int32_t> text = {}) {
  std::map<int32_t, int> found;
  for (int i = 0; i < 10000; ++i)
    ++found[sample(scores, options, text, (i + 0.5) / 10000)];
  return found;
}

using Counts = std::map<int32_t, int>;

} // namespace

TEST(Sampling, ByProbability) {
  EXPECT_EQ(counts({}), (Counts{{0, 1000}, {1, 4000}, {2, 500}, {3, 3000}, {4, 1500}}));
}

TEST(Sampling, TemperatureZeroTakesTheBestAndTheLowestIdAmongEquals) {
  EXPECT_EQ(counts({.temperature = 0}), (Counts{{1, 10000}}));
  EXPECT_EQ(sample(std::vector<double>{1, 2, 2}, {.temperature = 0}, {}, 0.9), 1);
}

TEST(Sampling, TemperatureDividesScores) {
  // Squares of the probabilities: 0.01, 0.16, 0.0025, 0.09, 0.0225, together 0.285.
  const Counts found = counts({.temperature = 0.5});
  EXPECT_NEAR(found.at(1), 10000 * 0.16 / 0.285, 1);
  EXPECT_NEAR(found.at(2), 10000 * 0.0025 / 0.285, 1);
}

TEST(Sampling, TheKBest) {
  EXPECT_EQ(counts({.topK = 1}), (Counts{{1, 10000}}));
  const Counts found = counts({.topK = 2});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(3), 10000 * 3 / 7.0, 1);
  EXPECT_EQ(counts({.topK = 9}), counts({}));
}

TEST(Sampling, TheBestThatHaveAProbabilityTogether) {
  EXPECT_EQ(counts({.topP = 0.39}).size(), 1u);
  EXPECT_EQ(counts({.topP = 0.41}).size(), 2u); // the one that reaches it belongs to them
  EXPECT_EQ(counts({.topP = 0.84}).size(), 3u);
  EXPECT_EQ(counts({.topP = 1.0}), counts({}));
  EXPECT_EQ(counts({.topK = 2, .topP = 0.6}).size(), 2u); // of the probability of these two
  EXPECT_EQ(counts({.topK = 2, .topP = 0.57}).size(), 1u);
}

TEST(Sampling, ThoseWithAPartOfTheBestOnesProbability) {
  EXPECT_EQ(counts({.minP = 0.3}).size(), 3u);
  EXPECT_EQ(counts({.minP = 1.0}), (Counts{{1, 10000}}));
}

TEST(Sampling, WhatTheTextHasIsPenalised) {
  // All scores are negative: multiplied.
  EXPECT_EQ(counts({.repetitionPenalty = 1000, .temperature = 0}, {1, 1}), (Counts{{3, 10000}}));
  EXPECT_EQ(sample(std::vector<double>{2, 3}, {.repetitionPenalty = 2, .temperature = 0},
                   std::vector<int32_t>{1}, 0),
            0);
}

TEST(Sampling, ManyIdsInOrder) {
  std::vector<double> many(100000);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<double>(i % 1000) * 1e-3;
  const SamplingOptions narrow{.topP = 0.5};
  const int32_t first = sample(many, narrow, {}, 0.0), last = sample(many, narrow, {}, 0.9999999);
  EXPECT_EQ(first, 999); // the best, and the lowest of those
  EXPECT_GT(many[static_cast<size_t>(last)], 0.5);
  EXPECT_LT(many[static_cast<size_t>(last)], 0.7);
}
