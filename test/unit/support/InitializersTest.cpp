// Initialisers: distributions, bounds, determinism, independence of the partition.
#include "runtime/support/Initializers.h"
#include "runtime/support/Error.h"
#include "runtime/support/InverseNormal.h"
#include "runtime/support/ParallelFor.h"
#include "runtime/support/Philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

using namespace hydra::support;

namespace {

constexpr size_t kSamples = 200'000;

std::vector<double> sample(const Initializer &init, size_t n = kSamples, uint64_t seed = 1,
                           std::string_view name = "layers.0.wq") {
  std::vector<double> values(n);
  fill(init, seed, name, values);
  return values;
}

double moment(const std::vector<double> &values, int power) {
  double sum = 0.0;
  for (const double value : values)
    sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

double normalCdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// Kolmogorov-Smirnov distance times sqrt(n); above 1.95 has probability 0.001.
template <typename Cdf> double ksStatistic(std::vector<double> values, Cdf cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]);
    distance =
        std::max({distance, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  return distance * std::sqrt(n);
}

std::string messageOf(const Initializer &init, size_t n = 1) {
  try {
    sample(init, n);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace

// Quantiles to 17 digits from 60-digit arithmetic (mpmath); p < e^-25 is the tail branch.
TEST(Initializers, InverseNormalCdfIsExactToDoublePrecision) {
  const std::pair<double, double> known[] = {
      {0.5625, 0.1573106846101707},
      {0.25, -0.67448975019608174},
      {0.075, -1.4395314709384559},
      {0.05, -1.6448536269514727},
      {0.01, -2.3263478740408411},
      {0.001, -3.0902323061678135},
      {1e-06, -4.753424308822899},
      {1e-10, -6.3613409024040562},
      {1e-12, -7.0344838253011319},
      {1e-15, -7.9413453261709968},
      {1.1102230246251565e-16, -8.2095361516013869},
      {1e-100, -21.273453560965324},
      {1e-300, -37.047096299361199},
  };
  for (const auto &[p, z] : known)
    EXPECT_NEAR(inverseNormalCdf(p), z, 1e-15 * std::abs(z)) << p;
  EXPECT_EQ(inverseNormalCdf(0.5), 0.0);
  EXPECT_EQ(inverseNormalCdf(0.75), -inverseNormalCdf(0.25));
}

TEST(Initializers, InverseNormalCdfInvertsTheCdf) {
  for (int sixteenths = -37 * 16; sixteenths < 0; ++sixteenths) {
    const double z = sixteenths / 16.0;
    const double p = normalCdf(z);
    EXPECT_NEAR(inverseNormalCdf(p), z, 4e-15 * std::abs(z) + 1e-15) << p;
  }
}

// All branches, their borders, and blocks that end anywhere.
TEST(Initializers, QuantilesInVectorsHaveTheBitsOfSingleOnes) {
  std::vector<double> numbers = {0.5, 0.075, 0.925, 0x1.3333333333332p-4, 0x1.3333333333334p-4};
  for (int power = 2; power < 1000; ++power)
    numbers.insert(numbers.end(),
                   {std::ldexp(1.3, -power), 1.0 - std::ldexp(1.0, -power % 53 - 1)});
  for (const size_t count : {size_t{0}, size_t{1}, size_t{511}, size_t{513}, numbers.size()}) {
    std::vector<double> values(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(count));
    inverseNormalCdf(values);
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(std::bit_cast<uint64_t>(values[i]),
                std::bit_cast<uint64_t>(inverseNormalCdf(numbers[i])))
          << numbers[i];
  }
}

TEST(Initializers, UniformNumbersInVectorsAreThoseOfSingleElements) {
  const Philox random(7, "layers.0.wq", 3);
  for (const uint64_t first :
       {uint64_t{0}, uint64_t{5}, (uint64_t{1} << 32) - 20, ~uint64_t{0} - 40}) {
    std::vector<double> values(37);
    random.uniform53(first, values);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i], random.uniform53(first + i)) << first << " + " << i;
  }
}

// The formulas one element at a time, as the oracle's readers would write them.
TEST(Initializers, ElementsAreThoseOfTheFormulas) {
  const Philox random(1, "layers.0.wq");
  constexpr size_t count = 5000;
  const double cut = 2.0, tail = 0.5 * std::erfc(cut / std::sqrt(2.0));
  const auto normal = sample(Initializer::normal(0.02), count);
  const auto truncated = sample(Initializer::truncNormal(0.02, cut), count);
  const auto uniform = sample(Initializer::uniform(0.5), count);
  for (size_t i = 0; i < count; ++i) {
    const double u = random.uniform53(i), lower = std::min(u, 1.0 - u);
    const double z = std::clamp(inverseNormalCdf(tail + lower * (1.0 - 2.0 * tail)), -cut, 0.0);
    EXPECT_EQ(normal[i], 0.02 * inverseNormalCdf(u)) << i;
    EXPECT_EQ(truncated[i], 0.02 * (u < 0.5 ? z : -z)) << i;
    EXPECT_EQ(uniform[i], (2.0 * u - 1.0) * 0.5) << i;
  }
}

TEST(Initializers, AnyNumberOfThreadsDrawsTheSameBits) {
  constexpr int64_t count = 100'003, block = 1000;
  for (const Initializer &init : {Initializer::constant(-0.0), Initializer::normal(0.02),
                                  Initializer::truncNormal(0.02, 3), Initializer::uniform(1)}) {
    std::vector<float> whole(count);
    fill(init, 1, "layers.0.wq", whole);
    for (const unsigned threads : {1U, 2U, 7U, 64U}) {
      std::vector<float> parts(count);
      parallelFor(threads, (count + block - 1) / block, [&](int64_t task) {
        const auto first = static_cast<size_t>(task * block);
        const std::span<float> part =
            std::span(parts).subspan(first, std::min<size_t>(block, parts.size() - first));
        fill(init, 1, "layers.0.wq", part, first);
      });
      EXPECT_EQ(std::ranges::equal(parts, whole,
                                   [](float a, float b) {
                                     return std::bit_cast<uint32_t>(a) ==
                                            std::bit_cast<uint32_t>(b);
                                   }),
                true)
          << threads;
    }
  }
}

TEST(Initializers, Constant) {
  EXPECT_EQ(sample(Initializer::constant(-2.5), 3), (std::vector<double>{-2.5, -2.5, -2.5}));
}

TEST(Initializers, Normal) {
  const auto values = sample(Initializer::normal(0.02));
  const double root = std::sqrt(static_cast<double>(kSamples));
  EXPECT_NEAR(moment(values, 1) / 0.02, 0.0, 4 / root);
  EXPECT_NEAR(moment(values, 2) / std::pow(0.02, 2), 1.0, 4 * std::sqrt(2.0) / root);
  EXPECT_NEAR(moment(values, 3) / std::pow(0.02, 3), 0.0, 4 * std::sqrt(15.0) / root);
  EXPECT_NEAR(moment(values, 4) / std::pow(0.02, 4), 3.0, 4 * std::sqrt(96.0) / root);
  EXPECT_LT(ksStatistic(values, [](double x) { return normalCdf(x / 0.02); }), 1.95);
}

TEST(Initializers, TruncNormalStaysInsideTheCutAndFollowsTheConditionalDistribution) {
  for (const double cut : {0.1, 1.0, 2.0, 3.0, 4.0}) {
    const auto values = sample(Initializer::truncNormal(0.25, cut));
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*low, -0.25 * cut);
    EXPECT_LE(*high, 0.25 * cut);
    EXPECT_GT(*high - *low, 0.25 * cut * 1.9); // reaches near both bounds
    const double tail = normalCdf(-cut);
    auto cdf = [&](double x) { return (normalCdf(x / 0.25) - tail) / (1 - 2 * tail); };
    EXPECT_LT(ksStatistic(values, cdf), 1.95) << cut;
    const double density = std::exp(-cut * cut / 2) / std::sqrt(2 * std::acos(-1.0));
    const double variance = 1 - 2 * cut * density / (1 - 2 * tail);
    EXPECT_NEAR(moment(values, 2) / (0.25 * 0.25), variance, 0.013 * variance) << cut;
  }
}

TEST(Initializers, TruncNormalWithoutCutIsNormal) {
  const auto normal = sample(Initializer::normal(1.0), 1000);
  const auto wide = sample(Initializer::truncNormal(1.0, 50.0), 1000);
  for (size_t i = 0; i < normal.size(); ++i)
    EXPECT_NEAR(wide[i], normal[i], 1e-15 * std::abs(normal[i]));
}

TEST(Initializers, Uniform) {
  const auto values = sample(Initializer::uniform(0.5));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GT(*low, -0.5);
  EXPECT_LT(*high, 0.5);
  EXPECT_LT(ksStatistic(values, [](double x) { return x + 0.5; }), 1.95);
}

TEST(Initializers, ElementsAreUncorrelated) {
  const auto values = sample(Initializer::normal(1.0));
  const auto other = sample(Initializer::normal(1.0), kSamples, 1, "layers.1.wq");
  const auto seeded = sample(Initializer::normal(1.0), kSamples, 2);
  double lagged = 0.0, named = 0.0, reseeded = 0.0;
  for (size_t i = 0; i + 1 < kSamples; ++i) {
    lagged += values[i] * values[i + 1];
    named += values[i] * other[i];
    reseeded += values[i] * seeded[i];
  }
  const double bound = 4 * std::sqrt(static_cast<double>(kSamples));
  EXPECT_LT(std::abs(lagged), bound);
  EXPECT_LT(std::abs(named), bound);
  EXPECT_LT(std::abs(reseeded), bound);
}

TEST(Initializers, ShuffleIsASeededPermutation) {
  std::vector<double> table(1000);
  std::iota(table.begin(), table.end(), 0.0);
  const auto shuffled = sample(Initializer::shuffle(table), table.size());
  EXPECT_NE(shuffled, table);
  EXPECT_TRUE(std::is_permutation(shuffled.begin(), shuffled.end(), table.begin()));
  EXPECT_EQ(shuffled, sample(Initializer::shuffle(table), table.size()));
  EXPECT_NE(shuffled, sample(Initializer::shuffle(table), table.size(), 2));
  EXPECT_NE(shuffled, sample(Initializer::shuffle(table), table.size(), 1, "other"));
}

TEST(Initializers, EveryPermutationIsEquallyLikely) {
  std::map<std::vector<double>, int> count;
  for (uint64_t seed = 0; seed < 6000; ++seed)
    ++count[sample(Initializer::shuffle({1, 2, 3}), 3, seed)];
  ASSERT_EQ(count.size(), 6u);
  for (const auto &[order, times] : count)
    EXPECT_NEAR(times, 1000, 4 * std::sqrt(1000 * 5 / 6.0));
}

TEST(Initializers, PartsEqualTheWhole) {
  std::vector<double> table(997);
  std::iota(table.begin(), table.end(), 0.0);
  for (const Initializer &init :
       {Initializer::constant(3), Initializer::normal(1), Initializer::truncNormal(1, 3),
        Initializer::uniform(1), Initializer::shuffle(table)}) {
    const auto whole = sample(init, table.size());
    std::vector<double> parts(table.size());
    const size_t cuts[] = {0, 1, 1, 130, 996, 997};
    for (size_t i = 0; i + 1 < std::size(cuts); ++i)
      fill(init, 1, "layers.0.wq", std::span(parts).subspan(cuts[i], cuts[i + 1] - cuts[i]),
           cuts[i]);
    EXPECT_EQ(parts, whole);
    std::vector<float> floats(table.size());
    fill(init, 1, "layers.0.wq", floats);
    for (size_t i = 0; i < floats.size(); ++i)
      EXPECT_EQ(floats[i], static_cast<float>(whole[i]));
  }
}

TEST(Initializers, ElementsBeyond32BitsAreDistinct) {
  double near = 0.0, far = 0.0;
  fill(Initializer::normal(1), 1, "big", std::span(&near, 1), 5);
  fill(Initializer::normal(1), 1, "big", std::span(&far, 1), (uint64_t{1} << 32) + 5);
  EXPECT_NE(near, far);
}

TEST(Initializers, BadValuesNameTheTensor) {
  const std::string tensor = "initializer of 'layers.0.wq': ";
  EXPECT_EQ(messageOf(Initializer::normal(-1)),
            tensor + "std is -1; expected a finite number >= 0");
  EXPECT_EQ(messageOf(Initializer::normal(std::nan(""))),
            tensor + "std is nan; expected a finite number >= 0");
  EXPECT_EQ(messageOf(Initializer::truncNormal(INFINITY, 3)),
            tensor + "std is inf; expected a finite number >= 0");
  EXPECT_EQ(messageOf(Initializer::truncNormal(1, 0)), tensor + "cut is 0; expected a number > 0");
  EXPECT_EQ(messageOf(Initializer::uniform(-0.5)),
            tensor + "limit is -0.5; expected a finite number >= 0");
  EXPECT_EQ(messageOf(Initializer::shuffle({1, 2}), 3),
            tensor + "the table to shuffle has 2 values; expected one for each of the elements "
                     "0 to 3");
}
