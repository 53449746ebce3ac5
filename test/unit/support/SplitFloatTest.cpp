// A float and its two halves.
#include "runtime/support/SplitFloat.h"
#include "runtime/support/DType.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hydra::support {
namespace {

uint32_t bitsOf(float x) { return std::bit_cast<uint32_t>(x); }

// Every sign and exponent, with all lower halves and upper bits around a carry.
TEST(SplitFloat, OfEveryNumberMakesItAgain) {
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    const uint32_t step = (upper & 0x7f) < 2 || (upper & 0x7f) > 0x7d ? 0x11 : 0x1357;
    for (uint32_t lower = 0; lower < 0x10000; lower += step) {
      const float x = std::bit_cast<float>(upper << 16 | lower);
      const SplitFloat halves = splitFloat(x);
      if (x != x)
        ASSERT_TRUE(std::isnan(joinFloat(halves)) && std::isnan(bf16ToFloat(halves.high)));
      else
        ASSERT_EQ(bitsOf(joinFloat(halves)), bitsOf(x)) << std::hex << upper << ' ' << lower;
    }
  }
}

TEST(SplitFloat, IsTheNearestBf16AndFromZeroOfTwo) {
  for (uint32_t bits = 0x3f7e0000; bits < 0x3f820000; ++bits)
    for (const float sign : {1.0F, -1.0F}) {
      const float x = sign * std::bit_cast<float>(bits);
      const uint16_t nearest = bf16FromDouble(x), high = splitFloat(x).high;
      if ((bits & 0xffff) == 0x8000)
        EXPECT_EQ(high, (bitsOf(x) >> 16) + 1);
      else
        EXPECT_EQ(high, nearest) << std::hex << bits;
    }
  // The largest number is nearest to infinity, and is made of it again.
  const float largest = std::numeric_limits<float>::max();
  EXPECT_TRUE(std::isinf(bf16ToFloat(splitFloat(largest).high)));
  EXPECT_EQ(joinFloat(splitFloat(largest)), largest);
}

} // namespace
} // namespace hydra::support
