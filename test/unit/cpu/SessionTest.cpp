// Sessions on the CPU: where values come from, what is refused, what training and calls leave.
#include "runtime/run/Session.h"
#include "runtime/cpu/CpuExecutor.h"
#include "runtime/plan/Schedule.h"
#include "runtime/report/Table.h"
#include "runtime/report/Units.h"
#include "runtime/run/Bench.h"
#include "runtime/run/ChromeTrace.h"
#include "runtime/run/ProfileTable.h"
#include "runtime/run/StartupTable.h"
#include "runtime/support/Error.h"
#include "runtime/support/Initializers.h"
#include "runtime/support/Philox.h"
#include "test/support/TemporaryFolder.h"
#include "test/unit/cpu/SmallTraining.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

using namespace hydra::report;
using namespace hydra::runtime;
using namespace hydra::test;
using hydra::planfile::InputKind;
using hydra::planfile::SegmentKind;
namespace support = hydra::support;

namespace {

/// A folder of its own for the files of one test.
class SessionTest : public testing::Test {
protected:
  void SetUp() override {
    folder =
        std::filesystem::temp_directory_path() / ("hydra-session-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
};

/// Tensors on their way into a file.
class Values {
public:
  template <typename T>
  Values &add(std::string name, support::DType dtype, std::vector<int64_t> shape,
              std::vector<T> values) {
    const auto bytes = std::as_bytes(std::span(values));
    storage.emplace_back(bytes.begin(), bytes.end());
    infos.push_back({std::move(name), dtype, std::move(shape)});
    return *this;
  }
  Values &floats(std::string name, std::vector<int64_t> shape, std::vector<float> values) {
    return add(std::move(name), support::DType::F32, std::move(shape), std::move(values));
  }
  Values &ints(std::string name, std::vector<int64_t> shape, std::vector<int32_t> values) {
    return add(std::move(name), support::DType::I32, std::move(shape), std::move(values));
  }
  std::filesystem::path write(const std::filesystem::path &path) const {
    std::vector<support::TensorView> views;
    for (size_t i = 0; i < infos.size(); ++i)
      views.push_back({infos[i], storage[i]});
    support::writeSafetensors(path, views);
    return path;
  }

private:
  std::vector<support::TensorInfo> infos;
  std::vector<std::vector<std::byte>> storage;
};

Values batch() {
  Values values;
  values.floats("target", {4}, {1, 2, 3, 4})
      .ints("tokens", {2, 3}, {0, 1, 2, 3, 4, 5})
      .ints("labels", {2, 3}, {1, 2, -100, 4, 5, 7});
  return values;
}

std::vector<float> floatsOf(const support::Safetensors &file, std::string_view name) {
  const support::TensorView &tensor = file.get(name);
  EXPECT_EQ(tensor.dtype, support::DType::F32);
  std::vector<float> values(tensor.bytes.size() / 4);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

/// The message of the Error that `fn` throws.
template <typename Fn> std::string errorOf(Fn fn) {
  try {
    fn();
  } catch (const support::Error &error) {
    return error.what();
  }
  return "(no error)";
}

std::string sessionError(const PlanBuilder &builder, const SessionOptions &options) {
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  return errorOf([&] { Session(file, executor, options); });
}

#define EXPECT_CONTAINS(text, part)                                                                \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

} // namespace

TEST_F(SessionTest, TrainingRepeatsTheBatchAndLeavesLossesAndVariables) {
  const PlanFile file = smallTraining().load();
  CpuExecutor executor(file, {.threads = 2});
  SessionOptions options;
  options.inputs = batch()
                       .floats("w", {4}, {5, 5, 5, 5})
                       .floats("w.m", {4}, {10, 20, 30, 40})
                       .write(folder / "in.safetensors");
  Session session(file, executor, options);
  EXPECT_TRUE(session.trains());
  EXPECT_EQ(session.tokens(), 6u);
  EXPECT_EQ(session.note(), "");

  constexpr int64_t steps = 5;
  SessionOutputs outputs(folder / "out.safetensors", session, steps + 1);
  std::vector<double> losses;
  for (int64_t i = 0; i < steps; ++i)
    losses.push_back(session.advance());
  losses.push_back(session.evaluate());
  outputs.write(losses);

  float w[4] = {5, 5, 5, 5};
  const auto out = support::Safetensors::open(folder / "out.safetensors");
  const std::vector<float> written = floatsOf(out, "losses");
  ASSERT_EQ(written.size(), 6u);
  for (int64_t i = 0; i <= steps; ++i) {
    float loss = 0;
    for (int j = 0; j < 4; ++j)
      loss += (w[j] - float(j + 1)) * (w[j] - float(j + 1)) / 2;
    EXPECT_FLOAT_EQ(written[size_t(i)], loss / 4) << i;
    for (int j = 0; j < 4 && i < steps; ++j)
      w[j] -= 0.5f * ((w[j] - float(j + 1)) / 4);
  }
  EXPECT_EQ(floatsOf(out, "w"), std::vector<float>(w, w + 4));
  EXPECT_EQ(floatsOf(out, "w.m"), (std::vector<float>{15, 25, 35, 45}));
  EXPECT_EQ(out.tensors().size(), 3u);
}

TEST_F(SessionTest, ScalarsComeFromSchedulesOrOverrides) {
  PlanBuilder builder = smallTraining();
  auto &schedule = *builder.plan.scalars[0]->schedule;
  schedule.kind = hydra::planfile::ScheduleKind::linear;
  schedule.peak = 0.8;
  schedule.warmup_steps = 4;
  schedule.first = 1;
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  SessionOptions options;
  options.inputs = batch().floats("w", {4}, {5, 5, 5, 5}).write(folder / "in.safetensors");
  const auto weightsAfter = [&](int steps) {
    Session session(file, executor, options);
    for (int i = 0; i < steps; ++i)
      session.advance();
    std::array<float, 4> w;
    executor.read(file.plan().variables()->Get(0)->tensor(), std::as_writable_bytes(std::span(w)));
    return w[0];
  };
  float w = 5;
  for (int i = 0; i < 3; ++i)
    w -= float(scheduleValue(schedule, i)) * ((w - 1) / 4);
  EXPECT_EQ(weightsAfter(3), w);
  options.scalars["lr"].peak = 2.0;
  options.scalars["lr"].kind = hydra::planfile::ScheduleKind::constant;
  EXPECT_EQ(weightsAfter(1), 5 - 2.0f * 1.0f);
  options.scalars["clip"].peak = 1.0;
  EXPECT_CONTAINS(errorOf([&] { weightsAfter(1); }), "the plan has no scalar 'clip'; it has lr");
}

TEST_F(SessionTest, AccumulationRunsSeveralTimesBeforeOneUpdate) {
  const PlanFile file = smallTraining(3).load();
  CpuExecutor executor(file, {.threads = 1});
  SessionOptions options;
  options.inputs = batch().floats("w", {4}, {5, 5, 5, 5}).write(folder / "in.safetensors");
  Session session(file, executor, options);
  EXPECT_EQ(session.tokens(), 18u);
  const double first = session.advance();
  EXPECT_FLOAT_EQ(float(first), (16 + 9 + 4 + 1) / 8.0f);
  session.advance();
  EXPECT_EQ(session.steps(), 2);
  std::array<float, 4> m;
  executor.read(file.plan().variables()->Get(1)->tensor(), std::as_writable_bytes(std::span(m)));
  EXPECT_EQ(m[0], 2.0f) << "apply ran once a step";
}

TEST_F(SessionTest, ParametersAreInitialisedWhenNoneIsGiven) {
  PlanBuilder builder = smallTraining();
  builder.plan.variables[0]->initializer->kind = hydra::planfile::InitKind::normal;
  builder.plan.variables[0]->initializer->std = 0.1;
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  SessionOptions options;
  options.inputs = batch().write(folder / "in.safetensors");
  options.seed = 42;
  const Session session(file, executor, options);
  EXPECT_CONTAINS(session.note(), "initial parameters of seed 42");
  std::array<float, 4> w, expected;
  executor.read(file.plan().variables()->Get(0)->tensor(), std::as_writable_bytes(std::span(w)));
  support::fill(support::Initializer::normal(0.1), 42, "w", std::span<float>(expected));
  EXPECT_EQ(w, expected);
}

TEST_F(SessionTest, FloatingTypesConvertAndTokensMayBe64Bit) {
  const PlanFile file = smallTraining().load();
  CpuExecutor executor(file, {.threads = 1});
  Values values;
  values.add<double>("target", support::DType::F64, {4}, {1, 2, 3, 4.00000001})
      .add<int64_t>("tokens", support::DType::I64, {2, 3}, {0, 1, 2, 3, 4, 7})
      .add<int64_t>("labels", support::DType::I64, {2, 3}, {0, 1, 2, 3, 4, -100})
      .add<double>("w", support::DType::F64, {4}, {0.1, 0.2, 0.3, 0.4});
  SessionOptions options;
  options.inputs = values.write(folder / "in.safetensors");
  const Session session(file, executor, options);
  std::array<float, 4> w;
  executor.read(file.plan().variables()->Get(0)->tensor(), std::as_writable_bytes(std::span(w)));
  EXPECT_EQ(w, (std::array<float, 4>{0.1f, 0.2f, 0.3f, 0.4f}));
}

TEST_F(SessionTest, RefusesInputsThatDoNotFit) {
  const PlanBuilder builder = smallTraining();
  SessionOptions options;
  const auto refusal = [&](const Values &values) {
    options.inputs = values.write(folder / "in.safetensors");
    return sessionError(builder, options);
  };
  const std::string path = (folder / "in.safetensors").string();
  EXPECT_EQ(refusal(Values()), path + ": tensor target is missing; expected F32 [4]");
  EXPECT_EQ(refusal(batch().floats("extra", {1}, {0})),
            path + ": tensor extra is no input, parameter or state of the plan");
  EXPECT_EQ(refusal(batch().floats("w", {2, 2}, {0, 0, 0, 0})),
            path + ": tensor w has shape [2, 2]; expected [4]");
  EXPECT_EQ(refusal(batch().ints("w", {4}, {0, 0, 0, 0})),
            path + ": tensor w is I32; expected F32");
  const auto withTokens = [](std::vector<int32_t> tokens, std::vector<int32_t> labels) {
    Values values;
    return values.floats("target", {4}, {1, 2, 3, 4})
        .ints("tokens", {2, 3}, std::move(tokens))
        .ints("labels", {2, 3}, std::move(labels));
  };
  EXPECT_EQ(refusal(withTokens({0, 1, 2, 3, 4, 8}, {0, 0, 0, 0, 0, 0})),
            "tokens[1,2] = 8 is not in [0, 8)");
  EXPECT_EQ(refusal(withTokens({0, -100, 2, 3, 4, 7}, {0, 0, 0, 0, 0, 0})),
            "tokens[0,1] = -100 is not in [0, 8)");
  EXPECT_EQ(refusal(withTokens({0, 1, 2, 3, 4, 7}, {0, 0, 0, -99, 0, 0})),
            "labels[1,0] = -99 is not in [0, 8), and not -100");
  EXPECT_CONTAINS((options.inputs = folder / "absent", sessionError(builder, options)), "absent");
}

TEST_F(SessionTest, RefusesPartialSetsOfParametersAndStates) {
  PlanBuilder builder = smallTraining();
  builder.variable("bias", {2}, 0.0);
  SessionOptions options;
  options.inputs = batch().floats("w", {4}, {1, 2, 3, 4}).write(folder / "in.safetensors");
  EXPECT_CONTAINS(sessionError(builder, options),
                  "there is no tensor bias although there is w; expected all parameters or none");
}

TEST_F(SessionTest, SyntheticTokensFollowThePublishedStream) {
  const PlanFile file = smallTraining().load();
  CpuExecutor executor(file, {.threads = 1});
  SessionOptions options;
  options.seed = 9;
  Session session(file, executor, options);
  EXPECT_CONTAINS(session.note(), "random tokens");
  const hydra::planfile::Plan &plan = file.plan();
  const auto read = [&](uint32_t tensor) {
    std::array<int32_t, 6> ids;
    executor.read(tensor, std::as_writable_bytes(std::span(ids)));
    return ids;
  };
  for (uint64_t step = 0; step < 3; ++step) {
    session.advance();
    const auto &inputs = *plan.programs()->Get(0)->inputs();
    const auto tokens = read(inputs.Get(1)->tensor()), labels = read(inputs.Get(2)->tensor());
    const support::Philox random(9, "tokens", step);
    for (size_t row = 0; row < 2; ++row)
      for (size_t s = 0; s < 3; ++s) {
        EXPECT_EQ(tokens[row * 3 + s], int32_t(8 * random.uniform53(row * 4 + s)));
        EXPECT_EQ(labels[row * 3 + s], int32_t(8 * random.uniform53(row * 4 + s + 1)));
      }
  }
}

TEST_F(SessionTest, SyntheticTokensByZipfsLaw) {
  const PlanFile file = smallTraining().load();
  SessionOptions options;
  options.seed = 9;
  options.ids = IdDistribution::zipf;
  const auto idsOfSteps = [&] {
    CpuExecutor executor(file, {.threads = 1});
    Session session(file, executor, options);
    EXPECT_EQ(session.note(), "random tokens by Zipf's law and initial parameters of seed 9");
    EXPECT_EQ(session.state().data, "random tokens by Zipf's law");
    std::vector<int32_t> all;
    for (int step = 0; step < 3; ++step) {
      session.advance();
      for (const uint32_t input : {1U, 2U}) {
        std::array<int32_t, 6> ids;
        executor.read(file.plan().programs()->Get(0)->inputs()->Get(input)->tensor(),
                      std::as_writable_bytes(std::span(ids)));
        all.insert(all.end(), ids.begin(), ids.end());
      }
    }
    return all;
  };
  std::vector<int32_t> expected;
  const support::ZipfIds law(8);
  for (uint64_t step = 0; step < 3; ++step) {
    const support::Philox random(9, "tokens", step);
    for (const uint64_t ahead : {0U, 1U}) // labels are tokens one ahead
      for (size_t row = 0; row < 2; ++row)
        for (size_t s = 0; s < 3; ++s)
          expected.push_back(static_cast<int32_t>(law(random.uniform53(row * 4 + s + ahead))));
  }
  EXPECT_EQ(idsOfSteps(), expected);
  EXPECT_EQ(idsOfSteps(), expected);
  options.seed = 10;
  options.ids = IdDistribution::uniform;
  CpuExecutor executor(file, {.threads = 1});
  EXPECT_EQ(Session(file, executor, options).note(),
            "random tokens and initial parameters of seed 10");
}

TEST_F(SessionTest, ACallLeavesItsOutputsByName) {
  PlanBuilder builder;
  builder.plan.header->mode = "grad";
  const uint32_t w = builder.plan.variables.size();
  builder.variable("w", {4}, 2.0);
  const uint32_t kernel = testKernel(builder, "half_square", 4);
  const uint32_t target = builder.tensor("target", {4}), loss = builder.tensor("loss", {}),
                 gradient = builder.tensor("gradient", {4});
  const uint32_t turned = builder.view("turned", {2, 2}, {1, 2}, SegmentKind::transient,
                                       builder.plan.tensors[gradient]->offset);
  auto &program =
      builder.program("grad", blocks(launch("half_square", kernel, 4, 4,
                                            {reads(builder.plan.variables[w]->tensor),
                                             reads(target), writes(loss), writes(gradient)})));
  builder.input(program, "target", InputKind::values, target);
  builder.output(program, "loss", loss);
  builder.output(program, "grad.w", gradient);
  builder.output(program, "turned", turned);
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  SessionOptions options;
  options.inputs = Values().floats("target", {4}, {1, 2, 3, 4}).write(folder / "in.safetensors");
  Session session(file, executor, options);
  EXPECT_FALSE(session.trains());
  SessionOutputs outputs(folder / "out.safetensors", session, 0);
  session.advance();
  const std::vector<Session::SmallOutput> small = session.smallOutputs();
  ASSERT_EQ(small.size(), 1u); // of a gradient, the numbers alone
  EXPECT_EQ(small[0].name, "loss");
  EXPECT_EQ(small[0].values, std::vector<double>{0.75});
  outputs.write({});
  const auto out = support::Safetensors::open(folder / "out.safetensors");
  EXPECT_EQ(floatsOf(out, "loss"), std::vector<float>{0.75f});
  EXPECT_EQ(floatsOf(out, "grad.w"), (std::vector<float>{0.25f, 0, -0.25f, -0.5f}));
  EXPECT_EQ(floatsOf(out, "turned"), (std::vector<float>{0.25f, -0.25f, 0, -0.5f}));
}

TEST_F(SessionTest, OutputsAppearWholeOrNotAtAll) {
  const PlanFile file = smallTraining().load();
  CpuExecutor executor(file, {.threads = 1});
  Session session(file, executor, {});
  EXPECT_CONTAINS(
      errorOf([&] { SessionOutputs(folder / "absent" / "out.safetensors", session, 1); }),
      "absent");
  {
    const SessionOutputs abandoned(folder / "out.safetensors", session, 1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(SessionTest, ALossThatIsNoNumberStopsTraining) {
  const PlanFile file = smallTraining().load();
  CpuExecutor executor(file, {.threads = 1});
  SessionOptions options;
  options.inputs = batch().floats("w", {4}, {NAN, 0, 0, 0}).write(folder / "in.safetensors");
  Session session(file, executor, options);
  EXPECT_EQ(errorOf([&] { session.advance(); }),
            "step 1: the loss is nan; learning rate 0.5; 1 of 1 parameters are not finite now, the "
            "first is w");
}

TEST_F(SessionTest, TrainPlansNeedTheirPrograms) {
  PlanBuilder builder = smallTraining();
  builder.plan.programs.pop_back();
  EXPECT_CONTAINS(sessionError(builder, {}), "has no program eval");
  builder = smallTraining();
  builder.plan.programs[0]->outputs.clear();
  EXPECT_CONTAINS(sessionError(builder, {}), "program train has no scalar output loss");
}

TEST(Reports, SpreadOfTimes) {
  const Spread odd = spreadOf({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.minimum, 1);
  EXPECT_DOUBLE_EQ(odd.mean, 2);
  EXPECT_DOUBLE_EQ(odd.deviation, 1);
  EXPECT_EQ(spreadOf({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(spreadOf({7}).deviation, 0);
}

TEST(Reports, TablesAndUnits) {
  Table table(1);
  table.add({"name", "us", "share"});
  table.add({"matmul", "12.5", "99.0%"});
  EXPECT_EQ(table.text(), "  name      us  share\n"
                          "  matmul  12.5  99.0%\n");
  EXPECT_EQ(bytesText(512), "512 B");
  EXPECT_EQ(bytesText(1536), "1.50 KiB");
  EXPECT_EQ(bytesText(uint64_t{23} << 30), "23.0 GiB");
  EXPECT_EQ(countText(1234567), "1,234,567");
  EXPECT_EQ(countText(999), "999");
}

/// A graph's launch has a flow to the first step of it, and times begin with what came first.
TEST(Reports, LaunchesInTimeLines) {
  const PlanFile file = smallTraining().load();
  const auto &blocks = *file.plan().programs()->Get(0)->blocks();
  std::vector<StepRun> runs;
  for (uint32_t i = 0; i < 2; ++i)
    runs.push_back({.step = blocks.Get(i)->node_as_Step(),
                    .run = 7,
                    .begin = 5.0 + i,
                    .end = 5.5 + i,
                    .kernel = {}});
  const std::vector<HostRun> launches = {{"cuGraphLaunch", 0, 7, 4.0, 4.25}};
  const std::vector<StepSample> samples = {{.end = 8, .wall = 4.5, .data = 0.5}};
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path / "trace.json";
  writeChromeTrace(path, file, {.runs = runs, .samples = samples, .launches = launches});
  std::ifstream stream(path);
  const nlohmann::json trace = nlohmann::json::parse(stream);
  std::map<std::string, nlohmann::json> found;
  for (const auto &event : trace.at("traceEvents"))
    found.try_emplace(event.at("ph").get<std::string>() + event.value("cat", ""), event);
  EXPECT_EQ(found.at("Xcuda_driver").at("name"), "cuGraphLaunch");
  EXPECT_EQ(found.at("sac2g").at("ts"), 0.5e6) << "the step began before the launch";
  EXPECT_EQ(found.at("fac2g").at("ts"), 1.5e6);
  EXPECT_EQ(found.at("fac2g").at("tid"), 0);
  EXPECT_EQ(found.at("sac2g").at("id"), found.at("fac2g").at("id"));
  EXPECT_EQ(found.at("Xcpu_op").at("ts"), 1.5e6);
}

/// What a device told while it ran 4 steps of 0.5 s and 6e11 FLOPs.
TEST(Reports, BenchOfADeviceThatIsWatched) {
  PlanBuilder builder = smallTraining();
  builder.plan.programs[0]->cost = hydra::planfile::Cost(600000000000, 1, 1.0);
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  Session session(file, executor, {});
  const std::vector<double> none, seconds(4, 0.5);
  const auto text = [&](const DeviceReadings &readings) {
    const std::string all = benchText(file, session, executor, seconds, readings);
    const size_t at = all.find("  device");
    return all.substr(at, all.find("  peak") - at);
  };
  const auto json = [&](const std::optional<DeviceReadings> &readings) {
    return nlohmann::ordered_json::parse(
        benchJson(file, session, executor, {none, seconds}, readings));
  };
  DeviceReadings readings;
  readings.megahertz = {1980, 1500, 1400, 1300};
  readings.watts = {600, 700, 650, 690};
  readings.celsius = {60, 61.0, 64, 63};
  readings.joules = 1400;
  readings.seconds = 2;
  readings.throttled = {{"power cap", 3}, {"thermal limit", 1}};
  readings.samples = 4;
  EXPECT_EQ(text(readings),
            "  device: 1450 MHz (1300 to 1980), 0.8 TFLOP/s per GHz, 660 W, 350 J a "
            "step, 64 C, throttled by power cap (3 of 4 samples), thermal limit (1 "
            "of 4)\n");
  const nlohmann::ordered_json all = json(readings), before = json({});
  EXPECT_EQ(before.size(), 8U);
  EXPECT_EQ(std::prev(before.end()).key(), "process_bytes");
  const auto behind = std::next(all.begin(), 8);
  EXPECT_EQ(behind.key(), "clock_mhz");
  EXPECT_EQ(all["clock_mhz"], 1450);
  EXPECT_EQ(all["clock_min_mhz"], 1300);
  EXPECT_EQ(all["clock_max_mhz"], 1980);
  EXPECT_NEAR(all["tflops_per_ghz"].get<double>(), 1.2 / 1.45, 1e-9);
  EXPECT_EQ(all["watts"], 660);
  EXPECT_EQ(all["joules"], 350);
  EXPECT_EQ(all["joules_counted"], true);
  EXPECT_EQ(all["celsius"], 64);
  EXPECT_EQ(all["throttled"], nlohmann::json({{"power cap", 3}, {"thermal limit", 1}}));
  EXPECT_EQ(all["device_samples"], 4);
  EXPECT_EQ(all["device_unknown"], nlohmann::json::array());

  readings = {};
  readings.watts = {600, 700};
  readings.seconds = 2;
  readings.throttled.emplace();
  readings.samples = 2;
  readings.unknown = {"clock: Not Supported"};
  EXPECT_EQ(text(readings),
            "  device: 650 W, 325 J a step (power x time), not throttled, not known: "
            "clock: Not Supported\n");
  EXPECT_EQ(json(readings)["joules"], 325);
  EXPECT_EQ(json(readings)["joules_counted"], false);
  EXPECT_TRUE(json(readings)["clock_mhz"].is_null() && json(readings)["celsius"].is_null());

  readings = {};
  readings.unknown = {"there is no libnvidia-ml.so.1"};
  EXPECT_EQ(text(readings), "  device: not known: there is no libnvidia-ml.so.1\n");
  EXPECT_TRUE(json(readings)["throttled"].is_null() && json(readings)["joules"].is_null());
}

TEST(Reports, BenchProfileAndStartup) {
  PlanBuilder builder = smallTraining();
  builder.plan.locations.push_back(hydra::planfile::Location(0, 41, 10));
  builder.plan.programs[0]->blocks[1]->node.AsStep()->location = 1;
  builder.plan.programs[0]->blocks[1]->node.AsStep()->layer = 7;
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  Session session(file, executor, {});
  timeSteps(session, 1); // warms up
  const std::string bench = benchText(file, session, executor, timeSteps(session, 3));
  EXPECT_CONTAINS(bench, "3 steps of plan.fb");
  EXPECT_CONTAINS(bench, "median ms");
  EXPECT_CONTAINS(bench, "(" + std::to_string(executor.arenaBytes()) + " bytes)");
  EXPECT_EQ(session.steps(), 4);

  EXPECT_EQ(bench.find("device"), std::string::npos) << "a CPU is not watched";
  EXPECT_FALSE(executor.watch());

  executor.setProfiling(true);
  timeSteps(session, 2);
  const std::vector<StepTime> times = executor.stepTimes();
  const Profile measured{.times = times, .timeline = {}, .runs = 2, .wallSeconds = 1.0};
  const std::string profile = profileText(file, measured);
  EXPECT_CONTAINS(profile, "optimizer");
  EXPECT_CONTAINS(profile, "predicted us");
  EXPECT_CONTAINS(profile, "model.mlir:41");
  EXPECT_EQ(profile.find("eval"), std::string::npos) << "eval did not run";
  EXPECT_CONTAINS(profileMarkdown(file, measured), "| phase | calls | us |");
  EXPECT_CONTAINS(profileJson(file, measured), "\"exchanges\": []");

  const std::string startup = startupTable(file, executor, {{"data", "synthetic"}});
  EXPECT_CONTAINS(startup, "test tiny from model.mlir, 4 parameters");
  EXPECT_CONTAINS(startup, "train, eval");
  EXPECT_CONTAINS(startup, "synthetic");
}
