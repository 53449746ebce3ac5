// Run-time scalars against the formulas of the models that use them.
#include "runtime/plan/Schedule.h"
#include "runtime/support/Error.h"
#include "test/support/PlanBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>
#include <utility>

using namespace hydra;
using namespace hydra::planfile;

namespace {

/// The schedule as a run of 1000 steps sees it.
class Value {
public:
  explicit Value(const ScheduleT &schedule) : schedule(runtime::resolveSchedule(schedule, 1000)) {}
  double operator()(int64_t step) const { return runtime::scheduleValue(schedule, step); }

private:
  ScheduleT schedule;
};

ScheduleT of(ScheduleKind kind, double peak) {
  ScheduleT schedule;
  schedule.kind = kind;
  schedule.peak = peak;
  return schedule;
}

} // namespace

TEST(Schedule, ConstantAndStep) {
  EXPECT_EQ(Value(of(ScheduleKind::constant, 0.25))(12), 0.25);
  ScheduleT step = of(ScheduleKind::step, 7);
  EXPECT_EQ(Value(step)(0), 0);
  step.first = 1;
  EXPECT_EQ(Value(step)(41), 42);
}

// Other seeds and steps have other keys, each time the same.
TEST(Schedule, KeysAreDrawn) {
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const uint64_t seed : {0, 1, 7})
    for (const int64_t step : {0, 1, 2, 1000}) {
      const runtime::DrawKey key = runtime::drawKey(seed, step),
                             again = runtime::drawKey(seed, step);
      EXPECT_EQ(key.low, again.low);
      EXPECT_EQ(key.high, again.high);
      seen.emplace(key.low, key.high);
    }
  EXPECT_EQ(seen.size(), 12u);
  EXPECT_TRUE(runtime::isCounted(ScheduleKind::draw_low));
  EXPECT_TRUE(runtime::isCounted(ScheduleKind::step));
  EXPECT_FALSE(runtime::isCounted(ScheduleKind::wsd));
  EXPECT_EQ(runtime::scheduleText(of(ScheduleKind::micro_batch, 0)), "counts micro-batches");
}

TEST(Schedule, LinearWarmUp) {
  ScheduleT schedule = of(ScheduleKind::linear, 2.0);
  EXPECT_EQ(Value(schedule)(0), 2.0);
  schedule.warmup_steps = 8;
  EXPECT_EQ(Value(schedule)(0), 0.0);
  EXPECT_EQ(Value(schedule)(4), 1.0);
  EXPECT_EQ(Value(schedule)(8), 2.0);
  EXPECT_EQ(Value(schedule)(1000), 2.0);
  schedule.first = 1;
  EXPECT_EQ(Value(schedule)(0), 0.25);
  EXPECT_EQ(Value(schedule)(7), 2.0);
}

TEST(Schedule, BlendOfTheHydraTrainer) { // models.md 3.4
  const auto [name, schedule] = runtime::parseSchedule("s=1,after=30,over=25,levels=10");
  EXPECT_EQ(name, "s");
  const Value value(schedule);
  for (int64_t step = 0; step < 70; ++step) {
    const double part = std::min(1.0, static_cast<double>(step - 30 + 1) / 25.0);
    const double expected = step < 30 ? 0.0 : std::max(0.1, std::nearbyint(10.0 * part) / 10.0);
    EXPECT_DOUBLE_EQ(value(step), expected) << step;
  }
}

TEST(Schedule, WarmUpOfThePonderLoss) { // models.md 3.6: min(1, step / (0.3 max_steps))
  const Value value(runtime::parseSchedule("warm=1,after=1,over=30").schedule);
  for (int64_t step = 0; step < 40; ++step)
    EXPECT_DOUBLE_EQ(value(step), std::min(1.0, static_cast<double>(step) / 30.0)) << step;
}

TEST(Schedule, RefusesWhatIsNoNumberOfAStep) {
  for (const char *text : {"", "s", "s=", "=1", "s=x", "s=1,over", "s=1,over=2.5", "s=nan",
                           "s=1,levels=2", "lr=1", "clip=1", "step=1"})
    EXPECT_THROW(runtime::parseSchedule(text), support::Error) << text;
}

TEST(Schedule, CosineOfTheTTTTrainer) { // models.md 4.9
  ScheduleT schedule = of(ScheduleKind::cosine, 3e-4);
  schedule.warmup_steps = 100;
  schedule.total_steps = 1000;
  const Value value(schedule);
  for (int64_t s = 0; s <= 1000; ++s) {
    const double expected =
        s < 100 ? s / 100.0 : 0.5 * (1 + std::cos(std::numbers::pi * (s - 100) / 900.0));
    EXPECT_NEAR(value(s), 3e-4 * expected, 1e-18);
  }
  EXPECT_NEAR(value(5000), 0, 1e-18);
}

TEST(Schedule, WarmUpStableDecayOfTheHydraTrainer) { // models.md 3.10
  ScheduleT schedule = of(ScheduleKind::wsd, 1e-4);
  schedule.floor = 0.3e-4;
  schedule.first = 1;
  schedule.warmup_steps = 100;
  schedule.stable_steps = 4165;
  schedule.total_steps = 5000;
  schedule.clamp = true;
  const Value value(schedule);
  EXPECT_EQ(value(0), 0.3e-4); // one hundredth of the peak without the clamp
  EXPECT_NEAR(value(49), 0.5e-4, 1e-18);
  EXPECT_EQ(value(100), 1e-4);
  EXPECT_EQ(value(4264), 1e-4);
  for (int64_t s = 4265; s < 5000; ++s) {
    const double progress = (s - 4265) / 735.0;
    EXPECT_NEAR(value(s), 1e-4 - 0.7e-4 * 0.5 * (1 - std::cos(std::numbers::pi * progress)), 1e-18);
  }
  EXPECT_NEAR(value(5000), 0.3e-4, 1e-18);
}

TEST(Schedule, DecayWithoutLength) {
  ScheduleT schedule = of(ScheduleKind::cosine, 1.0);
  schedule.warmup_steps = schedule.total_steps = 10;
  EXPECT_EQ(Value(schedule)(10), 1.0);
  EXPECT_EQ(Value(schedule)(11), 0.0);
}

TEST(Schedule, WhatIsLeftOpenFollowsTheRun) {
  ScheduleT cosine = of(ScheduleKind::cosine, 2.0);
  EXPECT_EQ(Value(cosine)(1000), 0.0);
  EXPECT_DOUBLE_EQ(Value(cosine)(500), 1.0);
  ScheduleT wsd = of(ScheduleKind::wsd, 2.0);
  wsd.warmup_steps = 200;
  wsd.stable_steps = -1;
  EXPECT_EQ(Value(wsd)(200 + 680), 2.0);
  EXPECT_LT(Value(wsd)(200 + 681), 2.0);
  EXPECT_EQ(Value(wsd)(1000), 0.0);
  wsd.warmup_steps = 1001;
  EXPECT_THROW(Value{wsd}, support::Error);
}
