// The guard of programs with safe forms, on scripted steps.
#include "runtime/run/SafetyMonitor.h"
#include "runtime/run/SafetyJson.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace hydra::runtime;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Of a monitor, the next steps with these losses.
class Script {
public:
  explicit Script(const SafetyOptions &options = {}, SafetyState begin = {})
      : monitor(options, std::move(begin)) {}

  std::vector<SafetyAnomaly> step(double loss, std::optional<double> norm = 1.0,
                                  double rate = 1000) {
    return monitor.observe({++steps, loss, norm, rate});
  }
  void steady(int count, double loss = 4.0) {
    for (int i = 0; i < count; ++i)
      EXPECT_TRUE(step(loss).empty());
  }
  SafetyStatus status() const { return monitor.state().status; }

  SafetyMonitor monitor;
  int64_t steps = 0;
};

TEST(SafetyMonitor, GoesFromPretestOverWindowToEnabled) {
  Script script({.window = 5});
  EXPECT_EQ(script.status(), SafetyStatus::pretesting);
  EXPECT_FALSE(script.monitor.isSafe());
  script.steady(3); // nothing is watched before the pretest
  EXPECT_FALSE(script.monitor.state().lossMean);
  script.monitor.pretested(3, "");
  EXPECT_EQ(script.status(), SafetyStatus::monitoring);
  EXPECT_EQ(script.monitor.state().enabledAt, 3);
  script.steady(4);
  EXPECT_EQ(script.status(), SafetyStatus::monitoring);
  script.steady(1);
  EXPECT_EQ(script.status(), SafetyStatus::enabled);
  EXPECT_TRUE(script.step(kNan, kNan).empty()); // behind the window nothing is judged
  EXPECT_EQ(script.status(), SafetyStatus::enabled);
}

TEST(SafetyMonitor, FailedPretestUsesTheSafeForm) {
  Script script;
  script.monitor.pretested(0, std::string(300, 'x'));
  EXPECT_EQ(script.status(), SafetyStatus::failed);
  EXPECT_TRUE(script.monitor.isSafe());
  EXPECT_EQ(script.monitor.state().reason.size(), 200u);
  EXPECT_EQ(script.monitor.state().disabledAt, 0);
  EXPECT_TRUE(script.step(kNan, kNan).empty());
}

TEST(SafetyMonitor, DisabledAgainIsDisabledSinceTheFirstTime) {
  Script script;
  script.monitor.disable(0, "--safe");
  Script resumed({}, script.monitor.state());
  resumed.monitor.disable(7, "--safe");
  EXPECT_EQ(resumed.status(), SafetyStatus::disabled);
  EXPECT_EQ(resumed.monitor.state().disabledAt, 0);
}

TEST(SafetyMonitor, WhatIsGivenUpLeavesTheRestWatched) {
  Script script({.window = 4});
  script.monitor.giveUp(0, "attention", std::string(300, 'x'));
  EXPECT_EQ(script.status(), SafetyStatus::monitoring);
  EXPECT_FALSE(script.monitor.isSafe());
  EXPECT_EQ(script.monitor.state().withoutReason.size(), 200u);
  script.steady(2);
  script.monitor.pretested(2, ""); // of a run that goes on
  EXPECT_EQ(script.monitor.state().enabledAt, 0);
  EXPECT_EQ(script.monitor.state().without, "attention");
  std::string problem;
  const std::optional<SafetyState> saved = safetyFrom(safetyJson(script.monitor.state()), problem);
  ASSERT_TRUE(saved) << problem;
  EXPECT_EQ(saved->without, "attention");
  EXPECT_EQ(saved->withoutReason, script.monitor.state().withoutReason);
  script.step(4.0, kNan);
  EXPECT_EQ(script.status(), SafetyStatus::fallback);
}

TEST(SafetyMonitor, ThreeSpikesFallBack) {
  Script script;
  script.monitor.pretested(0, "");
  script.steady(2);
  for (int spike = 1; spike <= 3; ++spike) {
    EXPECT_EQ(script.status(), SafetyStatus::monitoring);
    const double before = *script.monitor.state().lossMean, loss = 2.5 * before;
    const std::vector<SafetyAnomaly> found = script.step(loss);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].type, "loss_spike");
    EXPECT_EQ(found[0].value, loss);
    EXPECT_EQ(found[0].threshold, 2 * before); // of the average before the step
    EXPECT_DOUBLE_EQ(*script.monitor.state().lossMean, 0.9 * before + 0.1 * loss);
  }
  EXPECT_EQ(script.status(), SafetyStatus::fallback);
  EXPECT_EQ(script.monitor.state().reason, "too many anomalies (3)");
  EXPECT_EQ(script.monitor.state().disabledAt, 5);
  EXPECT_EQ(script.monitor.state().anomalies.at("loss_spike"), 3);
}

TEST(SafetyMonitor, TwiceTheAverageIsNoSpike) {
  Script script;
  script.monitor.pretested(0, "");
  script.steady(1, 3.0);
  EXPECT_TRUE(script.step(6.0).empty());
}

TEST(SafetyMonitor, NormThatIsNotFiniteFallsBackAtOnce) {
  for (const double norm : {kNan, kInfinity, -kInfinity}) {
    Script script;
    script.monitor.pretested(0, "");
    script.steady(2);
    const std::vector<SafetyAnomaly> found = script.step(4.0, norm);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].type, std::isnan(norm) ? "nan_grad" : "inf_grad");
    EXPECT_EQ(script.status(), SafetyStatus::fallback);
    EXPECT_EQ(script.monitor.state().disabledAt, 3);
  }
}

TEST(SafetyMonitor, WithoutNormTheLossIsLookedAt) {
  Script script;
  script.monitor.pretested(0, "");
  EXPECT_EQ(script.step(kNan, std::nullopt)[0].type, "nan_loss");
  EXPECT_EQ(script.status(), SafetyStatus::fallback);
}

TEST(SafetyMonitor, LossThatIsNotFiniteFallsBackWhateverTheNormIs) {
  for (const double loss : {kNan, kInfinity}) {
    Script script;
    script.monitor.pretested(0, "");
    script.steady(2);
    const std::vector<SafetyAnomaly> found = script.step(loss, 1.0);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].type, std::isnan(loss) ? "nan_loss" : "inf_loss");
    EXPECT_EQ(script.status(), SafetyStatus::fallback);
  }
}

TEST(SafetyMonitor, SearchForAScaleIsNoFallback) {
  Script script({.scalesLoss = true});
  script.monitor.pretested(0, "");
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(script.step(4.0, kInfinity)[0].type, "inf_grad");
  EXPECT_EQ(script.status(), SafetyStatus::monitoring);
}

TEST(SafetyMonitor, SlowStepsCountIfTheyAreAskedTo) {
  for (const bool counts : {false, true}) {
    Script script({.countsThroughput = counts});
    script.monitor.pretested(0, "");
    script.steady(3);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(script.status(), SafetyStatus::monitoring);
      EXPECT_EQ(script.step(4.0, 1.0, 100)[0].type, "throughput_drop");
    }
    EXPECT_EQ(script.status(), counts ? SafetyStatus::fallback : SafetyStatus::monitoring);
    EXPECT_EQ(script.monitor.state().anomalies.contains("throughput_drop"), counts);
  }
}

TEST(SafetyMonitor, GoesOnFromEveryState) {
  Script before({.window = 10});
  before.monitor.pretested(0, "");
  before.steady(3);
  before.step(40.0);
  Script whole({.window = 10}, before.monitor.state());
  std::string problem;
  const auto read = safetyFrom(safetyJson(before.monitor.state()), problem);
  ASSERT_TRUE(read) << problem;
  Script resumed({.window = 10}, *read);
  resumed.monitor.pretested(4, ""); // once more, which changes nothing
  whole.steps = resumed.steps = 4;
  for (Script *script : {&whole, &resumed})
    for (const double loss : {4.0, 90.0, 4.0, 200.0})
      script->step(loss);
  for (Script *script : {&whole, &resumed}) {
    EXPECT_EQ(script->status(), SafetyStatus::fallback);
    EXPECT_EQ(safetyJson(script->monitor.state()), safetyJson(whole.monitor.state()));
  }
  Script stays({}, whole.monitor.state());
  EXPECT_TRUE(stays.monitor.isSafe());
  EXPECT_TRUE(stays.step(1e9, kNan).empty());
}

TEST(SafetyMonitor, PretestOfAResumedRunMayFail) {
  SafetyState state;
  state.status = SafetyStatus::enabled;
  state.enabledAt = 0;
  Script script({}, state);
  script.monitor.pretested(200, "the loss is other");
  EXPECT_EQ(script.status(), SafetyStatus::failed);
  EXPECT_EQ(script.monitor.state().disabledAt, 200);
}

TEST(SafetyMonitor, DamagedStatesAreNamed) {
  const nlohmann::json good = safetyJson({});
  const std::vector<std::pair<const char *, nlohmann::json>> bad = {
      {"status", "WELL"},
      {"status", 3},
      {"configuration", nullptr},
      {"reason", 1},
      {"anomalies", 7},
      {"anomalies", {{"loss_spike", -1}}},
      {"counted", -1},
      {"counted", "two"},
      {"enabled_at_step", 1.5},
      {"disabled_at_step", "x"},
      {"loss_mean", "big"},
  };
  for (const auto &[name, value] : bad) {
    nlohmann::json object = good;
    object[name] = value;
    std::string problem;
    EXPECT_FALSE(safetyFrom(object, problem)) << name;
    EXPECT_TRUE(problem.starts_with(name)) << problem;
  }
  nlohmann::json object = good;
  object.erase("counted");
  std::string problem;
  EXPECT_FALSE(safetyFrom(object, problem));
  EXPECT_EQ(problem, "counted is missing; expected an integer from 0");
}

} // namespace
