// What a plan for several ranks should take.
#include "runtime/report/PredictedTime.h"
#include "runtime/report/CostReport.h"
#include "runtime/report/PlanTimes.h"
#include "runtime/report/Table.h"
#include "test/support/PlanBuilder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace hydra;
using namespace hydra::planfile;
using namespace hydra::test;

namespace {

std::unique_ptr<BlockT> timed(std::unique_ptr<BlockT> block, double microseconds) {
  block->node.AsStep()->cost = Cost(0, 0, microseconds);
  return block;
}
std::unique_ptr<BlockT> on(uint32_t stream, std::vector<uint32_t> waits, int32_t signals,
                           std::unique_ptr<BlockT> block) {
  block->stream = stream;
  block->waits = std::move(waits);
  block->signals = signals;
  return block;
}

/// `train`: 10 us of compute, 40 us of a gather of 1000 bytes beside 25 us of compute, a reader of
/// 5 us.
class PredictedTimeTest : public testing::Test {
protected:
  PredictedTimeTest() {
    auto axis = std::make_unique<MeshAxisT>();
    axis->name = "data";
    axis->size = 2;
    builder.plan.mesh.push_back(std::move(axis));
    const uint32_t x = builder.tensor("x", {250}), y = builder.tensor("y", {500}),
                   z = builder.tensor("z", {250});
    AllGatherT gather;
    gather.wire_bytes = 1000;
    ProgramT &program = builder.program(
        "train", blocks(on(0, {}, 0, timed(step("a", {writes(x)}), 10)),
                        on(1, {0}, 1, timed(call(gather, {reads(x), writes(y)}), 40)),
                        on(0, {}, -1, timed(step("b", {reads(x), writes(z)}), 25)),
                        on(0, {1}, -1, timed(step("c", {reads(y), writes(z)}), 5))));
    program.streams = 2;
    program.events = 2;
  }

  hydra::test::PlanBuilder builder;
};

} // namespace

TEST_F(PredictedTimeTest, OfAProgram) {
  const runtime::PlanFile file = builder.load();
  const report::PredictedTime time =
      report::predictedTime(file.plan(), *file.plan().programs()->Get(0));
  EXPECT_EQ(time.compute, 40);
  EXPECT_EQ(time.wire, 40);
  EXPECT_EQ(time.exposed, 15);
  EXPECT_EQ(time.total, 55);
  ASSERT_EQ(time.exchanges.size(), 1u);
  EXPECT_EQ(time.exchanges[0].wireBytes, 1000);
  EXPECT_EQ(time.exchanges[0].bandwidth(), 25e6);
  EXPECT_EQ(report::exchangeName(file.plan(), time.exchanges[0]), "all_gather of data");
}

TEST_F(PredictedTimeTest, CopiesOfOwnPiecesAreExposed) {
  // 4 us of the gather keep what stands beside it waiting; of the other 36 that hides 25.
  builder.plan.programs[0]->blocks[1]->node.AsStep()->own_copy_microseconds = 4;
  const runtime::PlanFile file = builder.load();
  report::PredictedTime time = report::predictedTime(file.plan(), *file.plan().programs()->Get(0));
  EXPECT_EQ(time.wire, 40);
  EXPECT_EQ(time.exposed, 15);
  EXPECT_EQ(time.exchanges[0].alone, 15);
  EXPECT_EQ(time.total, 55);
  // With as much beside it as it takes, the copy is what is left.
  builder.plan.programs[0]->blocks[2]->node.AsStep()->cost = Cost(0, 0, 100);
  const runtime::PlanFile longer = builder.load();
  time = report::predictedTime(longer.plan(), *longer.plan().programs()->Get(0));
  EXPECT_EQ(time.exchanges[0].alone, 4);
  EXPECT_EQ(time.exposed, 4);
  EXPECT_EQ(time.total, 10 + 4 + 100 + 5);
  // Beside the last hundredth of what runs there is 1 less.
  builder.plan.target->own_copy_tail = 0.01;
  const runtime::PlanFile beside = builder.load();
  time = report::predictedTime(beside.plan(), *beside.plan().programs()->Get(0));
  EXPECT_EQ(time.exchanges[0].ownCopy, 4);
  EXPECT_EQ(time.exchanges[0].alone, 3 + 36);
}

TEST_F(PredictedTimeTest, OfAStepWithMicroBatches) {
  builder.plan.programs[0]->role = ProgramRole::accumulate;
  builder.plan.programs[0]->name = "accumulate";
  builder.plan.accumulation = 3;
  const uint32_t w = builder.variable("w", {4});
  builder.program("apply",
                  blocks(timed(step("update", {writes(builder.plan.variables[w]->tensor)}), 7)));
  const runtime::PlanFile file = builder.load();
  const report::PredictedTime time = report::predictedStep(file.plan());
  EXPECT_EQ(time.total, 3 * 55 + 7);
  EXPECT_EQ(time.exposed, 45);
  EXPECT_EQ(time.wireBytes(), 3000);
  EXPECT_EQ(time.exchanges.at(0).calls, 3);
}

TEST_F(PredictedTimeTest, NothingIsInFrontOfKernelsThatBeginEarly) {
  const auto launch = [](const char *name, double microseconds) {
    auto block = timed(step(name, {}), microseconds);
    block->node.AsStep()->action.Set(LaunchT());
    return block;
  };
  builder.plan.kernels.push_back(std::make_unique<KernelT>());
  builder.program("chain", blocks(launch("d", 10), launch("e", 10), launch("f", 10)));
  builder.program("beside", blocks(on(0, {}, -1, launch("g", 10)), on(1, {}, -1, launch("h", 4)),
                                   on(0, {}, -1, launch("i", 10)), on(1, {}, -1, launch("j", 10))));
  builder.plan.target->sharing = std::make_unique<Sharing>(0, /*gap_microseconds=*/1, 0, 0);
  for (const bool early : {false, true}) {
    builder.plan.target->early_launch = early;
    const report::PackedPlan plan(builder.plan);
    const auto spans = [&](uint32_t program) {
      return report::predictedTimeline(*plan, *(*plan).programs()->Get(program));
    };
    EXPECT_NEAR(spans(1).compute, early ? 31 : 33, 1e-9); // the first has none in front of it
    // Beside another stream only behind a brief one: j behind h, and not i behind g.
    EXPECT_NEAR(spans(2).compute, early ? 37 : 38, 1e-9);
  }
}

TEST_F(PredictedTimeTest, Reports) {
  const runtime::PlanFile file = builder.load();
  const std::string text = report::costText(file.plan());
  EXPECT_NE(
      text.find("one step on 2 ranks, mesh data:2: 0.0550 ms predicted; exchanges take 0.0400 ms, "
                "of which 0.0150 ms (27.3% of it all) are exposed\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("all_gather of data      1       1000 B  40.0  72.7%      15.0        15.0  "
                      "27.3%       0.0"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\neach of 2 ranks: 1000 B on the wire, 0.0250 ms of exchanges hidden, "),
            std::string::npos)
      << text;
  EXPECT_NE(
      report::costMarkdown(file.plan()).find("| all_gather of data | 1 | 1000 B | 40.0 | 72.7% |"),
      std::string::npos);
  const auto json = nlohmann::json::parse(report::costJson(file.plan()));
  EXPECT_EQ(json.at("mesh"), "data:2");
  EXPECT_EQ(json.at("step").at("exposed_microseconds"), 15);
  EXPECT_EQ(json.at("programs")[0].at("predicted").at("exchanges")[0].at("kind"), "all_gather");
  EXPECT_EQ(json.at("step").at("hidden_microseconds"), 25);
  EXPECT_EQ(json.at("tokens"), 0);
  EXPECT_EQ(json.at("tokens_per_second"), nullptr);
}

TEST(Table, AsMarkdown) {
  report::Table table(1);
  table.add({"what", "us"});
  table.add({"a", "1.0"});
  EXPECT_EQ(table.markdown(), "| what | us |\n|---|---:|\n| a | 1.0 |\n");
  table.add({"a|b\nc", "2.0"});
  EXPECT_EQ(table.markdown(), "| what | us |\n|---|---:|\n| a | 1.0 |\n| a\\|b c | 2.0 |\n");
  EXPECT_EQ(table.text(""), "what    us\na      1.0\na|b c  2.0\n");
}
