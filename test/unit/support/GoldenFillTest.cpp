// The deterministic fill against the values printed in models.md §11.1.
#include "test/support/GoldenFill.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace hydra::test;

TEST(GoldenFill, UniformMatchesPrintedValues) {
  EXPECT_EQ(goldenUniform(1000, 0), -0.5303122997283936);
  EXPECT_EQ(goldenUniform(1000, 1), 0.6287418603897095);
  EXPECT_EQ(goldenUniform(1000, 2), 0.5468266010284424);
  EXPECT_EQ(goldenUniform(1000, 3), -0.38034534454345703);
  EXPECT_EQ(goldenUniform(2000, 0), 0.47556233406066895);
}

TEST(GoldenFill, FillIsBasePlusScaledUniformOfFamilyAndOrdinal) {
  std::vector<double> values(4);
  fillGolden(values, 1, 0, 0.0, 1.0);
  EXPECT_EQ(values[3], -0.38034534454345703);
  fillGolden(values, 2, 7, 1.0, 0.1);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], 1.0 + 0.1 * goldenUniform(2007, i));
}

TEST(GoldenFill, TokensMatchPrintedValues) {
  const GoldenTokens golden = goldenTokens(2, 32, 97);
  ASSERT_EQ(golden.tokens.size(), 64u);
  ASSERT_EQ(golden.labels.size(), 64u);
  const std::vector<int32_t> first = {83, 37, 11, 77, 9, 49, 36, 29, 25, 63};
  EXPECT_TRUE(std::equal(first.begin(), first.end(), golden.tokens.begin()));
  EXPECT_EQ(golden.tokens[32], 1);
}

TEST(GoldenFill, LabelsAreTheNextTokens) {
  const GoldenTokens golden = goldenTokens(3, 5, 11);
  for (size_t b = 0; b < 3; ++b)
    for (size_t s = 0; s + 1 < 5; ++s)
      EXPECT_EQ(golden.labels[b * 5 + s], golden.tokens[b * 5 + s + 1]);
}
