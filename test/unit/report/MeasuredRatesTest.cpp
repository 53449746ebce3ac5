// Interpolation between measured steps, and what plans make of it.
#include "runtime/report/MeasuredRates.h"
#include "runtime/report/PlanTimes.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/support/Error.h"
#include "test/support/PlanBuilder.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace hydra;
using namespace hydra::planfile;
using namespace hydra::report;
using namespace hydra::test;

namespace {

MeasuredRates someRates() {
  MeasuredRates rates;
  rates.about = "a \"machine\"";
  rates.sharing = Sharing(0.5, 0.25, 30, 6);
  rates.steps["matmul.bf16"] = {{{512, 768, 768, 1}, 2, 4}, {{4096, 768, 768, 1}, 10, 15}};
  rates.steps["norm"] = {{{1e6, 1}, 2, 3}};
  return rates;
}

std::string problemOf(const std::string &text) {
  try {
    MeasuredRates::parse(text, "file");
  } catch (const support::Error &error) {
    return error.what();
  }
  return "none";
}

} // namespace

TEST(MeasuredRates, WhatWasMeasuredIsPredicted) {
  const MeasuredRates rates = someRates();
  EXPECT_NEAR(rates.microseconds({"matmul.bf16", {512, 768, 768, 1}, 2}), 4, 1e-3);
  EXPECT_NEAR(rates.microseconds({"matmul.bf16", {4096, 768, 768, 1}, 10}), 15, 1e-3);
  EXPECT_NEAR(rates.microseconds({"norm", {1e6, 1}, 2}), 3, 1e-9);
}

TEST(MeasuredRates, BetweenMeasuredStepsSharesOfTheLimitAreBetween) {
  const MeasuredRates rates = someRates();
  double before = 2;
  for (const double rows : {600.0, 1000.0, 1448.0, 2000.0, 4000.0}) {
    const double ratio = rates.microseconds({"matmul.bf16", {rows, 768, 768, 1}, 100}) / 100;
    EXPECT_LT(ratio, before) << rows;
    before = ratio;
  }
  EXPECT_GT(before, 1.5);
  EXPECT_NEAR(rates.microseconds({"matmul.bf16", {std::sqrt(512.0 * 4096), 768, 768, 1}, 1}),
              std::sqrt(2 * 1.5), 1e-9)
      << "in the middle of both logarithms";
}

TEST(MeasuredRates, FewBlocksTakeAsLongAsMore) {
  const MeasuredRates rates = someRates();
  const auto ofBlocks = [&](double blocks) { // of 64, each of which moves as much
    return rates.microseconds({"norm", {1e6, 1}, 2 * blocks / 64, blocks / 64});
  };
  EXPECT_NEAR(ofBlocks(64), 3, 1e-9);
  EXPECT_NEAR(ofBlocks(16), ofBlocks(64), 1e-9);
}

TEST(MeasuredRates, OtherKindsKeepTheirLimits) {
  EXPECT_EQ(someRates().microseconds({"scan", {1e6, 1}, 7}), 7);
  EXPECT_EQ(someRates().microseconds({"norm", {1e6, 1}, 0}), 0);
}

TEST(MeasuredRates, TextAndBack) {
  const MeasuredRates rates = someRates();
  const MeasuredRates back = MeasuredRates::parse(rates.text(2), "file");
  EXPECT_EQ(back.about, rates.about);
  EXPECT_EQ(back.sharing.exclusive(), 0.5);
  EXPECT_EQ(back.sharing.input_microseconds(), 6);
  ASSERT_EQ(back.steps.size(), 2u);
  EXPECT_EQ(back.steps.at("matmul.bf16").at(1).sizes, (std::vector<double>{4096, 768, 768, 1}));
  EXPECT_EQ(back.steps.at("norm").at(0).microseconds, 3);
  EXPECT_EQ(back.text(2), rates.text(2));
}

TEST(MeasuredRates, Mistakes) {
  const std::string good = someRates().text(0);
  const auto with = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return problemOf(text);
  };
  EXPECT_EQ(problemOf(good), "none");
  EXPECT_EQ(with("\"about\"", "\"abaut\""),
            "file: field 'measured' must have about, exclusive, gap_microseconds, "
            "run_microseconds, input_microseconds, steps");
  EXPECT_EQ(with("\"exclusive\": 0.5", "\"exclusive\": 1.5"),
            "file: field 'measured.exclusive' is 1.5; expected a number from 0 to 1");
  EXPECT_EQ(
      with("[1e+06, 1, 2, 3]", "[1e+06, 1, 2]"),
      "file: field 'measured.steps.norm' is [1000000.0,1,2]; expected 2 sizes, the limit, and "
      "what was measured");
  EXPECT_EQ(with("[1e+06, 1, 2, 3]", "[1e+06, 1, 2, 0]"),
            "file: field 'measured.steps.norm' is [1000000.0,1,2,0]; expected numbers above 0");
  EXPECT_EQ(with("[1e+06, 1, 2, 3]", ""),
            "file: field 'measured.steps.norm' is []; expected a list of measured steps");
}

TEST(StepWork, OfMatmulsThatNoExecutorTakes) {
  hydra::test::PlanBuilder builder;
  builder.plan.target->multiprocessors = 4;
  const uint32_t x = builder.tensor("x", {8}), y = builder.tensor("y", {});
  MatmulT biased;
  biased.bias = true;
  builder.program("train", blocks(call(biased, {reads(x), writes(y)}),
                                  call(MatmulT(), {reads(x), reads(x), writes(y)})));
  const runtime::PlanFile file = builder.load();
  for (const Block *block : *file.plan().programs()->Get(0)->blocks())
    EXPECT_EQ(shareOf(file.plan(), *block->node_as_Step()), 0.25);
}

TEST(StepWork, ScansOfFewLongBlocksOccupyTheseAlone) {
  hydra::test::PlanBuilder builder;
  builder.plan.target->multiprocessors = 8;
  const uint32_t x = builder.tensor("x", {8}), y = builder.tensor("y", {8});
  const uint32_t kernel = builder.kernel("loop_0", 2);
  builder.plan.kernels[kernel]->grid = Dim3(2, 1, 1);
  const auto scan = [&](uint64_t bytes) {
    auto block = launch("loop", kernel, 0, 0, {reads(x), writes(y)});
    block->node.AsStep()->cost = Cost(1, bytes, 5);
    block->node.AsStep()->op_class = OpClass::scan;
    return block;
  };
  builder.program("train", blocks(scan(1 << 20), scan(1 << 10)));
  const PackedPlan packed(builder.plan);
  const auto &steps = *packed->programs()->Get(0)->blocks();
  const StepWork work = workOf(*packed, *steps.Get(0)->node_as_Step());
  EXPECT_EQ(work.share, 0.25);
  EXPECT_EQ(work.sizes[0], 4 << 20);
  EXPECT_EQ(work.limit, 5);
  EXPECT_EQ(work.limitOfAll(), 20);
  EXPECT_EQ(workOf(*packed, *steps.Get(1)->node_as_Step()).share, 1) << "too short to be of blocks";
}

TEST(PlanTimes, StepsAndTotals) {
  hydra::test::PlanBuilder builder;
  const uint32_t x = builder.tensor("x", {250000}), y = builder.tensor("y", {250000});
  const auto one = [&](uint32_t stream) {
    auto block = step("a", {reads(x), writes(y)});
    block->node.AsStep()->cost = Cost(1000000, 1000000, 2);
    block->node.AsStep()->op_class = OpClass::norm;
    block->stream = stream;
    return block;
  };
  builder.program("train", blocks(one(0), one(0)));
  PlanT &plan = builder.plan;
  predictTimes(plan, someRates());
  const StepT &first = *plan.programs[0]->blocks[0]->node.AsStep();
  EXPECT_EQ(first.limit_microseconds, 2);
  EXPECT_NEAR(first.cost.microseconds(), 3, 1e-9);
  EXPECT_NEAR(plan.programs[0]->cost.microseconds(), 2 * (3 + 0.25) + 30, 1e-9)
      << "two steps, a gap behind each, and what is around a run";
  predictTimes(plan, someRates());
  EXPECT_NEAR(first.cost.microseconds(), 3, 1e-9) << "limits stay";
  EXPECT_EQ(plan.target->measured, "a \"machine\"");
}
