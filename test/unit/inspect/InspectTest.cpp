// What hydra-inspect finds in plans, and how it ends.
#include "runtime/report/LiveMemory.h"
#include "runtime/support/Error.h"
#include "test/support/SamplePlan.h"
#include "tools/hydra-inspect/PlanJson.h"
#include "tools/hydra-inspect/PlanText.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>

#include <sys/wait.h>

namespace hydra::test {

using namespace planfile;

namespace {

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

struct Result {
  int status;
  std::string output; // standard output and error
};

Result runInspect(const std::string &arguments) {
  const std::string command = std::string("{ ") + HYDRA_INSPECT + " " + arguments + "; } 2>&1";
  // The shell redirects. NOLINTNEXTLINE(bugprone-command-processor)
  FILE *pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  for (size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    output.append(buffer.data(), count);
  return {WEXITSTATUS(::pclose(pipe)), output};
}

std::string temporary(const std::string &name) { return testing::TempDir() + "inspect-" + name; }

} // namespace

TEST(Inspect, LiveRangesFollowValues) {
  PlanBuilder builder;
  const uint32_t a = builder.tensorAt("a", {16}, SegmentKind::transient, 0);
  const uint32_t b = builder.tensorAt("b", {16}, SegmentKind::transient, 64);
  const uint32_t again = builder.tensorAt("again", {16}, SegmentKind::transient, 0);
  const uint32_t half = builder.view("half", {8}, {1}, SegmentKind::transient, 32);
  ProgramT &program = builder.program("eval", blocks(step("fill", {writes(a)}),               // 0
                                                     step("copy", {reads(half), writes(b)}),  // 1
                                                     step("scale", {updates(b)}),             // 2
                                                     step("copy", {reads(b), writes(again)}), // 3
                                                     step("fill", {writes(b)})));             // 4
  builder.output(program, "again", again);
  const runtime::PlanFile file = builder.load();
  const auto memory = report::liveMemory(file.plan(), *file.plan().programs()->Get(0));
  const auto piece = [](uint64_t begin, uint64_t end, uint32_t first, uint32_t last, uint32_t t) {
    return std::array<uint64_t, 5>{begin, end, first, last, t};
  };
  std::vector<std::array<uint64_t, 5>> found;
  found.reserve(memory.pieces.size());
  for (const auto &p : memory.pieces)
    found.push_back(piece(p.begin, p.end, p.first, p.last, p.tensor));
  EXPECT_EQ(found,
            (std::vector{piece(0, 32, 0, 0, a), piece(32, 64, 0, 1, a), piece(64, 128, 1, 3, b),
                         piece(0, 64, 3, 4, again), piece(64, 128, 4, 4, b)}));
  EXPECT_EQ(memory.peakBytes, 128u);
  EXPECT_EQ(memory.peakBlock, 3u);
  EXPECT_EQ(report::drawMemory(file.plan(), memory, 128, 4, 5),
            (std::vector<std::string>{"x..xx", "xx.xx", ".xxxx", ".xxxx"}));
}

TEST(Inspect, InPlaceWritesCountOnce) {
  PlanBuilder builder;
  const uint32_t x = builder.tensorAt("x", {16}, SegmentKind::transient, 0);
  const uint32_t y = builder.tensorAt("y", {16}, SegmentKind::transient, 0);
  builder.program("eval", blocks(step("fill", {writes(x)}), step("exp", {writes(y), reads(x)}),
                                 step("log", {reads(y)})));
  const runtime::PlanFile file = builder.load();
  EXPECT_EQ(report::liveMemory(file.plan(), *file.plan().programs()->Get(0)).peakBytes, 64u);
}

TEST(Inspect, LoopsKeepWhatTheyTouchAlive) {
  PlanBuilder builder;
  const uint32_t all = builder.tensorAt("all", {4, 16}, SegmentKind::transient, 0);
  const uint32_t row = builder.view("row", {16}, {1}, SegmentKind::transient, 0);
  builder.program("eval", blocks(step("fill", {writes(all)}), step("wait", {}),
                                 loop(4, {LoopStride(row, 64)}, blocks(step("f", {writes(row)}))),
                                 step("sum", {reads(all)})));
  const runtime::PlanFile file = builder.load();
  const auto memory = report::liveMemory(file.plan(), *file.plan().programs()->Get(0));
  ASSERT_EQ(memory.pieces.size(), 1u);
  EXPECT_EQ(memory.pieces[0].tensor, all);
  EXPECT_EQ(memory.pieces[0].last, 3u);
  EXPECT_EQ(memory.peakBytes, 256u);
}

TEST(Inspect, PersistentBytesHaveOneCategoryEach) {
  PlanBuilder builder = samplePlan();
  builder.view("view", {4}, {1}, SegmentKind::persistent, 0);
  const runtime::PlanFile file = builder.load();
  const auto bytes = report::persistentMemory(file.plan());
  EXPECT_EQ(bytes[static_cast<size_t>(Category::param)], 128u + 12);
  EXPECT_EQ(bytes[static_cast<size_t>(Category::opt_state)], 128u);
  EXPECT_EQ(bytes[static_cast<size_t>(Category::other)], 4u);
}

TEST(Inspect, JsonHasTheParametersContract) {
  const runtime::PlanFile file = samplePlan().load();
  inspect::Json json;
  inspect::addParameters(json, file.plan());
  ASSERT_EQ(json["parameters"].size(), 2u);
  EXPECT_EQ(json["parameters"][0]["name"], "layers.0.w");
  EXPECT_EQ(json["parameters"][0]["shape"], (inspect::Json{8, 4}));
  EXPECT_EQ(json["parameters"][0]["dtype"], "f32");
  EXPECT_EQ(json["states"][0]["owner"], "layers.0.w");
  EXPECT_EQ(json["states"][0]["role"], "moment");
  EXPECT_EQ(json["scalars"][0]["shape"], inspect::Json::array());
}

TEST(Inspect, JsonHasTheWholeTree) {
  const std::string path = temporary("tree.fb");
  runtime::writePlan(path, samplePlan().plan);
  const Result result = runInspect(path + " --json");
  ASSERT_EQ(result.status, 0) << result.output;
  const auto json = inspect::Json::parse(result.output);
  EXPECT_EQ(json["header"]["symbols"]["D"], "4");
  EXPECT_EQ(json["segments"][1]["size"], 1280);
  const auto &train = json["programs"][0]["blocks"];
  EXPECT_EQ(train[kMatmul]["step"]["alternatives"][1]["attrs"]["algorithm"], 64);
  EXPECT_EQ(train[kAdamW]["step"]["kernel"], "adamw");
  EXPECT_EQ(train[kAdamW]["waits"], inspect::Json{1});
  const auto &inner = train[kLoop]["loop"]["blocks"][1]["loop"];
  EXPECT_EQ(inner["blocks"][0]["switch"]["cases"][0]["blocks"][0]["step"]["function"], "fill");
}

TEST(Inspect, SelectionsLimitWhatIsShown) {
  const std::string path = temporary("selection.fb");
  runtime::writePlan(path, samplePlan().plan);
  const std::string all = runInspect(path).output;
  EXPECT_TRUE(contains(all, fmt::format("plan format {}", runtime::kPlanVersion)));
  for (const char *part :
       {"parameters: 2", "transient segment", "kernels: 2", "switch on depth", "model.mlir:1:1"})
    EXPECT_TRUE(contains(all, part)) << part;
  const std::string kernels = runInspect(path + " --kernels").output;
  EXPECT_TRUE(contains(kernels, "kernels: 2"));
  EXPECT_FALSE(contains(kernels, "parameters:"));
  EXPECT_FALSE(contains(kernels, "switch on"));
  const auto json = inspect::Json::parse(runInspect(path + " --json --steps").output);
  EXPECT_TRUE(json.contains("programs"));
  EXPECT_FALSE(json.contains("parameters"));
}

TEST(Inspect, MembersOfUnitsAreShownWithTheirShapeAndPlace) {
  PlanBuilder builder = samplePlan();
  const uint32_t data = builder.axis("data", 2), other = builder.axis("other", 3);
  const uint32_t unit = builder.tensor("unit", {2, 8}, SegmentKind::persistent);
  builder.member("w2", unit, {3, 4}, 2, {data, other});
  const std::string path = temporary("unit.fb");
  runtime::writePlan(path, builder.plan);
  const std::string text = runInspect(path).output;
  EXPECT_TRUE(contains(text, "parameters: 3 with 47 elements")) << text;
  EXPECT_TRUE(contains(text, "f32 [3, 4]           constant(0)  at 2 of unit over data*other"))
      << text;
  const auto json = inspect::Json::parse(runInspect(path + " --json").output);
  const auto &w2 = json["parameters"][2];
  EXPECT_EQ(w2["shape"], (inspect::Json{3, 4}));
  EXPECT_EQ(w2["unit"]["offset"], 2);
  EXPECT_EQ(w2["unit"]["axis"], "data*other");
}

TEST(Inspect, ErrorsAreOneLineAndStatusOne) {
  const std::string path = temporary("damaged.fb");
  runtime::writePlan(path, samplePlan().plan);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(100).put('\x55');
  const std::string full = temporary("good.fb");
  runtime::writePlan(full, samplePlan().plan);
  for (const std::string &arguments : {std::string("/nonexistent.fb"), path, std::string(),
                                       path + " --nonsense", full + " > /dev/full"}) {
    const Result result = runInspect(arguments);
    EXPECT_EQ(result.status, 1) << arguments;
    EXPECT_TRUE(result.output.starts_with("hydra-inspect: ")) << result.output;
    EXPECT_EQ(result.output.find('\n'), result.output.size() - 1) << result.output;
  }
  EXPECT_EQ(runInspect("--help").status, 0);
}

} // namespace hydra::test
