// Intervals hold what they say.
#include "runtime/report/Histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace hydra::report;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

} // namespace

TEST(Histogram, OfNumbersHasIntervalsBetweenTheLeastAndTheLargest) {
  const auto found = histogramOf(std::vector{1.0, kNaN, 5.0, 2.0, kInfinity, 2.5});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->limits, (std::vector{2.0, 3.0, 4.0, 5.0}));
  EXPECT_EQ(found->counts, (std::vector{1.0, 2.0, 0.0, 1.0}));
  EXPECT_EQ(found->min, 1.0);
  EXPECT_EQ(found->max, 5.0);
  EXPECT_EQ(found->count, 4.0);
  EXPECT_EQ(found->sum, 10.5);
  EXPECT_EQ(found->sumOfSquares, 36.25);
}

TEST(Histogram, OfEqualNumbersHasOneInterval) {
  const auto found = histogramOf(std::vector{0.25, 0.25});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->limits, (std::vector{0.25}));
  EXPECT_EQ(found->counts, (std::vector{2.0}));
}

TEST(Histogram, OfManyAndOfVeryLargeNumbersLosesNone) {
  std::vector<double> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), -500.0);
  numbers.push_back(std::numeric_limits<double>::max());
  numbers.push_back(std::numeric_limits<double>::lowest());
  const auto found = histogramOf(numbers);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->limits.size(), 30u);
  EXPECT_TRUE(std::is_sorted(found->limits.begin(), found->limits.end()));
  EXPECT_EQ(std::accumulate(found->counts.begin(), found->counts.end(), 0.0), 1002.0);
}

TEST(Histogram, OfNumbersThatDifferByTheLastBitHasItsLimitsInOrder) {
  const double least = 1.4619490898556684, largest = std::nextafter(least, 2.0);
  for (size_t count = 2; count <= 30; ++count) {
    std::vector<double> numbers(count, least);
    numbers.back() = largest;
    const auto found = histogramOf(numbers);
    ASSERT_TRUE(found);
    EXPECT_TRUE(std::is_sorted(found->limits.begin(), found->limits.end())) << count;
    EXPECT_EQ(std::accumulate(found->counts.begin(), found->counts.end(), 0.0), double(count));
  }
}

TEST(Histogram, OfCountsHasNumbersInTheMiddleOfTheirIntervals) {
  const auto found = histogramOfCounts(std::vector{0.0, 3.0, 0.0, 1.0, 0.0}, -2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->limits, (std::vector{-1.5, -0.5, 0.5, 1.5, 2.5}));
  EXPECT_EQ(found->counts, (std::vector{0.0, 3.0, 0.0, 1.0, 0.0}));
  EXPECT_EQ(found->min, -1.0);
  EXPECT_EQ(found->max, 1.0);
  EXPECT_EQ(found->count, 4.0);
  EXPECT_EQ(found->sum, -2.0);
  EXPECT_EQ(found->sumOfSquares, 4.0);
}

TEST(Histogram, OfNothingIsNone) {
  EXPECT_FALSE(histogramOf({}));
  EXPECT_FALSE(histogramOf(std::vector{kNaN, -kInfinity}));
  EXPECT_FALSE(histogramOfCounts({}));
  EXPECT_FALSE(histogramOfCounts(std::vector{0.0, 0.0}));
  EXPECT_FALSE(histogramOfCounts(std::vector{1.0, -1.0}));
  EXPECT_FALSE(histogramOfCounts(std::vector{1.0, kNaN}));
  EXPECT_FALSE(histogramOfCounts(std::vector{1.0, kInfinity}));
}
