// What earlier steps let later ones do, and that a pause changes nothing of it.
#include "runtime/run/StepPolicies.h"
#include "runtime/support/Error.h"
#include "runtime/support/LossLimit.h"
#include "test/unit/cpu/SmallTraining.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <random>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::test;
using hydra::planfile::ScheduleKind;
using hydra::planfile::ScheduleT;
namespace support = hydra::support;

namespace {

/// A plan with a learning rate, a clip, a limit of the loss, and a number that waits for 60 steps.
class StepPoliciesTest : public testing::Test {
protected:
  StepPoliciesTest() {
    PlanBuilder builder = smallTraining();
    builder.scalar("clip", 2.0);
    builder.scalar(support::kLossLimit, 0.0);
    ScheduleT &late = *builder.plan.scalars[builder.scalar("late", 1.0)]->schedule;
    late.kind = ScheduleKind::linear;
    late.first = 1;
    late.delay_steps = 60;
    late.warmup_steps = 20;
    ScheduleT &rate = *builder.plan.scalars[0]->schedule;
    rate.kind = ScheduleKind::wsd;
    rate.peak = 1.0;
    rate.floor = 0.1;
    rate.stable_steps = -1;
    file.emplace(builder.load());
  }

  /// What steps have, and what was said, step by step. Losses and norms are those of `loss` and
  /// `norm`; before step `pause` everything is saved and begins again from there.
  struct Record {
    std::vector<double> rates, clips, limits, late;
    std::vector<std::pair<int64_t, std::string>> said;
    bool operator==(const Record &) const = default;
  };
  template <typename Loss> Record run(const PolicyFlags &flags, Loss loss, int64_t pause = -1) {
    constexpr int64_t steps = 100;
    std::mt19937 random(7);
    std::uniform_real_distribution<double> norm(0.5, 4.0);
    Record record;
    auto scalars =
        std::make_unique<Scalars>(file->plan(), std::map<std::string, ScheduleChange>(), steps);
    auto policies = std::make_unique<StepPolicies>(flags, nullptr, *scalars);
    const auto note = [&](int64_t step, const std::string &text) {
      if (!text.empty())
        record.said.emplace_back(step, text);
    };
    for (int64_t step = 0; step < steps; ++step) {
      if (step == pause) {
        const SavedSchedules schedules = scalars->save(step);
        const std::optional<SavedPolicies> saved = policies->save();
        scalars = std::make_unique<Scalars>(file->plan(), std::map<std::string, ScheduleChange>(),
                                            steps, &schedules);
        policies =
            std::make_unique<StepPolicies>(PolicyFlags(), saved ? &*saved : nullptr, *scalars);
      }
      policies->begin(step, *scalars);
      record.rates.push_back(*scalars->value("lr", step));
      record.clips.push_back(*scalars->value("clip", step));
      record.limits.push_back(*scalars->value(support::kLossLimit, step));
      record.late.push_back(*scalars->value("late", step));
      note(step, policies->takeStep(step, loss(step), norm(random), *scalars));
      if (policies->wantsEvaluation(step + 1))
        note(step, policies->takeEvaluation(step + 1, loss(step), *scalars));
    }
    return record;
  }
  /// The same, with a pause before any step.
  template <typename Loss> Record runPaused(const PolicyFlags &flags, Loss loss) {
    const Record whole = run(flags, loss);
    for (int64_t pause = 1; pause < 100; ++pause)
      EXPECT_EQ(run(flags, loss, pause), whole) << "paused before step " << pause;
    return whole;
  }

  std::optional<PlanFile> file;
};

std::string errorOf(const PolicyFlags &flags) {
  try {
    parsePolicies(flags);
  } catch (const support::Error &error) {
    return error.what();
  }
  return "(no error)";
}

} // namespace

TEST_F(StepPoliciesTest, ClipFollowsTheNorm) { // models.md 3.10, by other bounds
  const Record record =
      runPaused({{"dynamic-clip", "2,min=1.5,max=5"}}, [](int64_t) { return 1.0; });
  std::mt19937 random(7);
  std::uniform_real_distribution<double> norm(0.5, 4.0);
  double mean = 2.0 / 2;
  for (size_t step = 0; step < record.clips.size(); ++step) {
    EXPECT_DOUBLE_EQ(record.clips[step], std::clamp(2 * mean, 1.5, 5.0)) << step;
    mean = 0.95 * mean + 0.05 * norm(random);
  }
}

TEST_F(StepPoliciesTest, TheLimitOfTheLossFollowsItNoFasterThanItself) {
  const auto loss = [](int64_t step) {
    return step == 30 ? 1e6 : step < 60 ? 1.0 + 0.01 * double(step % 5) : 5.0;
  };
  const Record record = runPaused({{"batch-filter", "2"}, {"dynamic-clip", "2"}}, loss);
  EXPECT_EQ(record.limits[0], 0); // nothing is usual yet
  double mean = loss(0);
  int64_t refused = 0;
  for (int64_t step = 1; step < 100; ++step) {
    const double limit = record.limits[size_t(step)];
    EXPECT_DOUBLE_EQ(limit, 2 * mean) << step;
    refused += loss(step) > limit ? 1 : 0;
    mean = 0.9 * mean + 0.1 * std::min(loss(step), limit);
  }
  // The one far above, and of those that stay the first: 1.1^k reaches 5 / 2 with k = 10.
  EXPECT_EQ(refused, 11);
  // The norm of what is left out does not count.
  EXPECT_DOUBLE_EQ(record.clips[31], record.clips[30]);
  EXPECT_TRUE(run({}, loss).limits == std::vector<double>(100, 0.0));
}

TEST_F(StepPoliciesTest, ALossThatRisesLowersTheRateForSomeSteps) {
  const auto loss = [](int64_t step) {
    return step == 30 || step == 33 ? 9.0 : 1.0 + 0.01 * double(step % 5);
  };
  const Record plain = run({}, loss);
  const Record record = runPaused({{"loss-spike", "2,steps=5,rate=0.25"}}, loss);
  for (size_t step = 0; step < record.rates.size(); ++step)
    EXPECT_DOUBLE_EQ(record.rates[step], plain.rates[step] * (step > 30 && step <= 38 ? 0.25 : 1))
        << step;
  ASSERT_EQ(record.said.size(), 2u);
  EXPECT_EQ(record.said[0].first, 30);
  EXPECT_EQ(record.said[1].first, 33);
}

TEST_F(StepPoliciesTest, AHeldOutLossThatRisesBeginsTheDecay) { // models.md 3.10
  const auto loss = [](int64_t step) { return step < 40 ? 2.0 : 2.0 + 0.1 * double(step - 40); };
  const Record plain = run({}, loss);
  EXPECT_EQ(plain.rates[84], 1.0);
  const Record record = runPaused({{"cooldown", "eval"}}, loss);
  // The third rise behind the middle; half of the steps that remain are the decay.
  double fast = 2.0, slow = 2.0;
  int64_t begin = 0, rises = 0;
  for (int64_t steps = 1; steps <= 100 && begin == 0; ++steps) {
    fast += 0.1 * (loss(steps - 1) - fast);
    slow += 0.02 * (loss(steps - 1) - slow);
    if (steps > 50 && (fast - slow) / slow > 0.05 && ++rises == 3)
      begin = steps;
  }
  ASSERT_GT(begin, 50);
  const int64_t end = begin + (100 - begin) / 2;
  for (int64_t step = 0; step < 100; ++step) {
    const double part = std::min(1.0, double(step - begin) / double(end - begin));
    const double expected =
        step < begin ? 1.0 : 0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * part));
    EXPECT_NEAR(record.rates[size_t(step)], expected, 1e-12) << step;
  }
  EXPECT_EQ(record.said.size(), 1u);
  EXPECT_EQ(run({{"cooldown", "off"}}, loss), plain);
}

TEST_F(StepPoliciesTest, ANumberBeginsEarlyWhenTheLossIsLow) { // models.md 3.10
  const auto loss = [](int64_t step) { return 3.0 - 0.05 * double(step); };
  const Record record = runPaused({{"start-early", "late,below=2.5,from=12,over=4"}}, loss);
  ASSERT_EQ(record.said.size(), 1u);
  const int64_t begin = record.said[0].first + 1;
  EXPECT_GT(begin, 12);
  EXPECT_LT(begin, 60);
  for (int64_t step = 0; step < 100; ++step)
    EXPECT_DOUBLE_EQ(record.late[size_t(step)],
                     step < begin ? 0.0 : std::min(1.0, double(step - begin + 1) / 4))
        << step;
  // Not before `from`, and never later than its schedule.
  EXPECT_EQ(run({{"start-early", "late,below=9,from=20"}}, loss).said.at(0).first, 19);
  EXPECT_TRUE(run({{"start-early", "late,below=-9"}}, loss).said.empty());
}

TEST_F(StepPoliciesTest, LongerRunsHaveAnotherStablePart) { // models.md 3.10
  const std::map<std::string, ScheduleChange> none;
  const Scalars first(file->plan(), none, 100);
  EXPECT_EQ(first.value("lr", 84), 1.0);
  EXPECT_LT(first.value("lr", 90), 1.0);
  const SavedSchedules saved = first.save(100);
  const Scalars same(file->plan(), none, 100, &saved), longer(file->plan(), none, 200, &saved);
  EXPECT_EQ(same.value("lr", 90), first.value("lr", 90));
  EXPECT_EQ(longer.value("lr", 184), 1.0);
  EXPECT_LT(longer.value("lr", 190), 1.0);
  EXPECT_NEAR(*longer.value("lr", 200), 0.1, 1e-12);
}

TEST_F(StepPoliciesTest, PhasesEndEarlyOneByOne) {
  const std::vector<int64_t> ends = {30, 60, 90};
  const auto run = [&](const PolicyFlags &flags, int64_t pause) {
    Scalars scalars(file->plan(), {}, 100);
    auto policies = std::make_unique<StepPolicies>(flags, nullptr, scalars, ends);
    std::vector<std::pair<int64_t, int64_t>> saved; // steps behind which more are saved
    for (int64_t step = 0; step < 100; ++step) {
      if (step == pause) {
        const std::optional<SavedPolicies> state = policies->save();
        policies = std::make_unique<StepPolicies>(PolicyFlags(), &*state, scalars, ends);
      }
      const int64_t before = policies->stepsSaved();
      policies->takeStep(step, 10.0 - 0.1 * static_cast<double>(step), std::nullopt, scalars);
      if (policies->stepsSaved() != before)
        saved.emplace_back(step + 1, policies->stepsSaved());
    }
    return saved;
  };
  // Phase 1 may end from step 10 on; phase 2 is as long as it was; phase 3 ends when it begins.
  const PolicyFlags flags = {{"end-phase", "1,below=100,from=10;3,below=9"}};
  const std::vector<std::pair<int64_t, int64_t>> expected = {{10, 20}, {41, 49}};
  EXPECT_EQ(run(flags, -1), expected);
  EXPECT_EQ(run(flags, 9), expected);
  EXPECT_EQ(run(flags, 40), expected);
  EXPECT_EQ(run(flags, 41), expected);
  // The last step of a phase ends nothing early.
  const std::vector<std::pair<int64_t, int64_t>> none;
  EXPECT_EQ(run({{"end-phase", "1,below=100,from=30"}}, -1), none);
}

TEST_F(StepPoliciesTest, WhatMeansNothingIsRefused) {
  for (const char *text : {"", "x", "0", "-1", "2,", "2,min", "2,min=x", "2,least=1",
                           "2,min=3,max=2", "nan", "inf", "2,max=0"})
    EXPECT_NE(errorOf({{"dynamic-clip", text}}), "(no error)") << text;
  for (const char *text : {"", "0.5", "2,steps=3", "inf"})
    EXPECT_NE(errorOf({{"batch-filter", text}}), "(no error)") << text;
  for (const char *text : {"0.5", "2,steps=0", "2,rate=2", "2,rate=-1", "2,steps=1.5"})
    EXPECT_NE(errorOf({{"loss-spike", text}}), "(no error)") << text;
  for (const char *text : {"s", "s,below", "s,below=x", "s,from=3", "s,below=2,from=-1"})
    EXPECT_NE(errorOf({{"start-early", text}}), "(no error)") << text;
  EXPECT_EQ(errorOf({{"cooldown", "yes"}}), "--cooldown: 'yes' is not off, eval or train");
  EXPECT_EQ(errorOf({{"dynamic-clip", "2,min=50,max=3000"}}), "(no error)");

  const PlanFile small = smallTraining().load(); // with a constant rate, and no clip
  const Scalars scalars(small.plan(), {}, 100);
  EXPECT_THROW(StepPolicies({{"dynamic-clip", "2"}}, nullptr, scalars), support::Error);
  EXPECT_THROW(StepPolicies({{"cooldown", "train"}}, nullptr, scalars), support::Error);
  EXPECT_THROW(StepPolicies({{"start-early", "lr,below=2"}}, nullptr, scalars), support::Error);
  EXPECT_THROW(StepPolicies({{"end-phase", "1,below=2"}}, nullptr, scalars), support::Error);
  EXPECT_THROW(StepPolicies({{"end-phase", "3,below=2"}}, nullptr, scalars, {10, 20}),
               support::Error);
}
