// Philox4x32-10 against Random123's known answers, and the streams built on it.
#include "runtime/support/Philox.h"

#include <gtest/gtest.h>

#include <set>

using namespace hydra::support;

using Words = std::array<uint32_t, 4>;

TEST(Philox, KnownAnswersOfRandom123) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KnownAnswersOfFewerRounds) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}, kFewestPhiloxRounds),
            (Words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, kFewestPhiloxRounds),
            (Words{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
}

// The layout that device code must repeat: XXH3_64bits("") is 0x2d06800538d394c2.
TEST(Philox, KeyIsSeedXorNameHashAndCounterIsElementThenStep) {
  const Philox stream(0x2d06800538d394c2, "", 0x1111111122222222);
  EXPECT_EQ(stream.block(0x3333333344444444),
            philox4x32({0x44444444, 0x33333333, 0x22222222, 0x11111111}, {0, 0}));
  const Philox zero(0, "");
  EXPECT_EQ(zero.block(5), philox4x32({5, 0, 0, 0}, {0x38d394c2, 0x2d068005}));
}

TEST(Philox, SeedNameStepAndElementAllSeparateStreams) {
  std::set<uint64_t> seen;
  for (uint64_t seed : {0, 1, 2}) {
    for (const char *name : {"layers.0.wq", "layers.1.wq", "tok_emb"}) {
      for (uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40})
        for (uint64_t i : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 33})
          seen.insert(Philox(seed, name, step).bits64(i));
    }
  }
  EXPECT_EQ(seen.size(), 81u);
}

TEST(Philox, Uniform53IsOpenAndOnTheOddGrid) {
  const Philox stream(7, "x");
  double sum = 0.0, squares = 0.0;
  constexpr int n = 100'000;
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform53(i);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    const auto k = static_cast<uint64_t>(u * 0x1p53);
    ASSERT_EQ(k, stream.bits64(i) >> 11 | 1);
    ASSERT_EQ(static_cast<double>(k) * 0x1p-53, u);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * 0.2887 / 316);
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * 0.2981 / 316);
}
