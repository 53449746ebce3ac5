// How often each id comes, and that a draw is the first sum above its number.
#include "runtime/support/ZipfIds.h"

#include "runtime/support/Philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace hydra::support;

namespace {

std::vector<double> sumsOf(uint64_t count) {
  std::vector<double> sums;
  double sum = 0;
  for (uint64_t k = 1; k <= count; ++k)
    sums.push_back(sum += 1.0 / static_cast<double>(k));
  return sums;
}

} // namespace

/// Searched for without the table of places, also at and beside each bound.
TEST(ZipfIds, AreTheFirstSumsAbove) {
  for (const uint64_t count : {1U, 2U, 3U, 8U, 257U, 50257U}) {
    const ZipfIds law(count);
    const std::vector<double> sums = sumsOf(count);
    const auto check = [&](double u) {
      const auto found = std::ranges::upper_bound(sums, u * sums.back());
      const auto expected =
          std::min<uint64_t>(static_cast<uint64_t>(found - sums.begin()), count - 1);
      ASSERT_EQ(law(u), expected) << count << " ids, " << u;
    };
    const Philox random(3, "ids", count);
    for (uint64_t i = 0; i < 100000; ++i)
      check(random.uniform53(i));
    for (const double sum : sums)
      for (const double u : {std::nextafter(sum / sums.back(), 0.0), sum / sums.back(),
                             std::nextafter(sum / sums.back(), 2.0)})
        if (u < 1)
          check(u);
    check(0x1p-53);
    check(1 - 0x1p-53);
  }
}

/// Frequencies within 6 standard deviations of 1 / ((k + 1) H), those of rare ids together.
TEST(ZipfIds, ComeAsOftenAsTheLawSays) {
  constexpr uint64_t kCount = 1000, kDraws = 1000000;
  const ZipfIds law(kCount);
  std::vector<uint64_t> found(kCount, 0);
  const Philox random(7, "tokens");
  for (uint64_t i = 0; i < kDraws; ++i)
    ++found.at(law(random.uniform53(i)));
  const double whole = sumsOf(kCount).back();
  const auto check = [&](uint64_t begin, uint64_t end) {
    double p = 0, drawn = 0;
    for (uint64_t k = begin; k < end; ++k) {
      p += 1.0 / (static_cast<double>(k + 1) * whole);
      drawn += static_cast<double>(found[k]);
    }
    const double mean = p * kDraws, deviation = std::sqrt(kDraws * p * (1 - p));
    EXPECT_NEAR(drawn, mean, 6 * deviation) << begin << " to " << end;
  };
  for (uint64_t k = 0; k < 100; ++k)
    check(k, k + 1);
  for (uint64_t k = 100; k < kCount; k += 100)
    check(k, k + 100);
}

/// Numbers, not a law: what is drawn stays the same on every machine.
TEST(ZipfIds, AreTheSameEverywhere) {
  const ZipfIds law(50257);
  const Philox random(1, "tokens");
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 8; ++i)
    ids.push_back(law(random.uniform53(i)));
  EXPECT_EQ(ids, (std::vector<uint64_t>{0, 2616, 0, 38221, 2391, 1436, 828, 0}));
}
