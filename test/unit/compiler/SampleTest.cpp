// hydra.sample: what the oracle draws in float64, by sorting, is what runs draw.
#include "runtime/support/Sampling.h"
#include "test/support/Compile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace hydra;
using namespace hydra::test;

TEST(Sample, TheOracleDrawsAsRunsDo) {
  constexpr int64_t batch = 3, ids = 77, tokens = 2, words = 3;
  Compiler compiler;
  auto module = compiler.parse(R"(
    hydra.model @m version 1 bound {} {
      hydra.entry @e(%scores: tensor<3x77xf32>, %tokens: tensor<3x2xi32>, %seen: tensor<3x3xi32>, %position: tensor<3xf32>,
                     %settings: tensor<3x5xf32>, %draw: tensor<3x4xi32>) {
        %token, %next = hydra.sample %scores, %tokens, %seen, %position, %settings, %draw : tensor<3x77xf32>, tensor<3x2xi32>, tensor<3x3xi32>, tensor<3xf32>, tensor<3x5xf32>, tensor<3x4xi32>
        hydra.return token = %token, next = %next : tensor<3xi32>, tensor<3x3xi32>
      }
    })");
  ASSERT_TRUE(module) << compiler.takeDiagnostics();
  std::mt19937 random(5);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  const auto pick = [&](std::initializer_list<float> of) { return of.begin()[below(of.size())]; };
  std::normal_distribution<float> normal(0, 2);
  TensorMap values;
  values["seen"] = RefTensor({batch, words});
  std::vector<uint32_t> seen(batch * words), keys(ids);
  int drawn = 0;
  for (int round = 0; round < 400; ++round) {
    RefTensor scores({batch, ids}), given({batch, tokens}), position({batch}),
        settings({batch, SampleOp::kSettings}), draw({batch, SampleOp::kDraw});
    for (double &score : scores.data)
      score = normal(random);
    for (double &token : given.data)
      token = static_cast<double>(below(ids));
    for (double &at : position.data)
      at = pick({-1, 0, 5, 6, 7, 8});
    for (int64_t b = 0; b < batch; ++b) {
      const float row[] = {pick({0, 0.5F, 1, 2}), pick({0, 1, 5}), pick({1, 0.3F, 0.9F}),
                           pick({0, 0.1F, 1}), pick({1, 1.5F})};
      std::copy(std::begin(row), std::end(row), &settings.data[b * SampleOp::kSettings]);
    }
    for (double &word : draw.data)
      word = static_cast<int32_t>(random());
    values["scores"] = scores, values["tokens"] = given, values["position"] = position;
    values["settings"] = settings, values["draw"] = draw;
    llvm::FailureOr<TensorMap> results = interpret(programOf(*module, "e"), values);
    ASSERT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    const RefTensor token = results->lookup("token");
    values["seen"] = results->lookup("next");
    for (int64_t b = 0; b < batch; ++b) {
      if (position.data[b] < 0) {
        ASSERT_EQ(token.data[b], 0);
        continue;
      }
      const std::span own(&seen[b * words], words);
      if (position.data[b] == 0)
        std::fill(own.begin(), own.end(), 0);
      for (int64_t t = 0; t < tokens; ++t)
        support::markSeen(own, ids, static_cast<int32_t>(given.data[b * tokens + t]));
      for (int64_t w = 0; w < words; ++w)
        ASSERT_EQ(static_cast<uint32_t>(static_cast<int64_t>(values["seen"].data[b * words + w])),
                  own[w]);
      const std::vector<float> row(&scores.data[b * ids], &scores.data[b * ids] + ids);
      const double *s = &settings.data[b * SampleOp::kSettings], *d = &draw.data[b * 4];
      const auto f = [&](int i) { return static_cast<float>(s[i]); };
      const auto word = [&](int i) { return static_cast<uint32_t>(static_cast<int64_t>(d[i])); };
      const uint64_t bits = support::SamplingDraw{word(0), word(1), word(2), word(3)}.bits();
      ASSERT_EQ(token.data[b],
                support::sampleToken(row, own, {f(0), f(1), f(2), f(3), f(4)}, bits, keys))
          << "round " << round << ", sequence " << b;
      ++drawn;
    }
  }
  EXPECT_GT(drawn, 500);
}
