// Which counter a number has, against the definition by logarithms of two in double.
#include "runtime/support/ExponentCounts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace hydra::support;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

} // namespace

TEST(ExponentCounter, IsTheExponentRoundedToNearest) {
  for (const float x : {1.0F, 0.8F, 1.4F, -1.0F})
    EXPECT_EQ(exponentCounter(x, -40, 64), 40) << x;
  EXPECT_EQ(exponentCounter(1.5F, -40, 64), 41);
  EXPECT_EQ(exponentCounter(0.7F, -40, 64), 39);
  // The two numbers around the square root of two.
  const float below = 1.41421354F, above = std::nextafter(below, 2.0F);
  ASSERT_LT(double(below) * below, 2.0);
  ASSERT_GT(double(above) * above, 2.0);
  for (int exponent = -39; exponent < 23; ++exponent) {
    EXPECT_EQ(exponentCounter(std::ldexp(below, exponent), -40, 64), exponent + 40);
    EXPECT_EQ(exponentCounter(std::ldexp(above, exponent), -40, 64), exponent + 41);
  }
}

TEST(ExponentCounter, HasEndsForAllOtherNumbers) {
  for (const float x :
       {0.0F, -0.0F, 1e-30F, std::numeric_limits<float>::denorm_min(),
        std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(exponentCounter(x, -40, 64), 0) << x;
  for (const float x : {kInfinity, -kInfinity, std::numeric_limits<float>::max(), -1e30F})
    EXPECT_EQ(exponentCounter(x, -40, 64), 63) << x;
  EXPECT_EQ(exponentCounter(5.0F, 7, 1), 0);
}

TEST(ExponentCounter, OfAnyBitsIsThatOfTheLogarithm) {
  for (uint64_t bits = 0; bits < (uint64_t{1} << 31); bits += 65521) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x > 0) || std::isinf(x))
      continue;
    const auto exponent = static_cast<int64_t>(std::floor(std::log2(double(x)) + 0.5));
    EXPECT_EQ(exponentCounter(x, kLeastExponent, kMostExponents),
              std::clamp<int64_t>(exponent - kLeastExponent, 0, kMostExponents - 1))
        << x;
  }
}
