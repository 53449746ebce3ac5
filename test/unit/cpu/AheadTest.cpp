// Steps that a device is given before the end of the one in front: they leave what they leave one
// by one, and nothing else happens beside them.
#include "runtime/run/Session.h"
#include "runtime/run/Trainer.h"
#include "runtime/support/Error.h"
#include "test/support/TemporaryFolder.h"
#include "test/unit/cpu/AheadExecutor.h"
#include "test/unit/cpu/SmallTraining.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::test;
using hydra::planfile::SegmentKind;
namespace support = hydra::support;

namespace {

/// Random targets, so that each step has a loss of its own.
struct Outcome {
  std::vector<double> losses;
  std::array<float, 4> w{};
};

/// Of a run of so many steps; 0: nobody knows.
SessionOptions optionsFor(int64_t steps = 0) {
  SessionOptions options;
  options.seed = 5;
  options.steps = steps;
  return options;
}

std::array<float, 4> weights(const PlanFile &file, Executor &executor) {
  std::array<float, 4> w{};
  executor.read(file.plan().variables()->Get(0)->tensor(), std::as_writable_bytes(std::span(w)));
  return w;
}

Outcome outcomeOf(const PlanFile &file, Executor &executor, int steps) {
  Session session(file, executor, optionsFor());
  Outcome run;
  for (int i = 0; i < steps; ++i) {
    run.losses.push_back(session.advance(/*goesOn=*/i + 1 < steps));
    EXPECT_EQ(session.steps(), i + 1);
  }
  EXPECT_FALSE(session.hasBegun());
  EXPECT_TRUE(session.isSound());
  run.w = weights(file, executor);
  return run;
}

std::string bytesOf(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What each checkpoint in a folder has of parameters, by its name.
std::map<std::string, std::string> parametersIn(const std::filesystem::path &folder) {
  std::map<std::string, std::string> all;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory())
      for (const auto &file : std::filesystem::directory_iterator(entry.path()))
        if (file.path().extension() == ".safetensors")
          all[entry.path().filename().string() + "/" + file.path().filename().string()] =
              bytesOf(file.path());
  return all;
}

} // namespace

TEST(Ahead, StepsLeaveWhatTheyLeaveOneByOne) {
  for (const uint32_t accumulation : {1U, 3U}) {
    const PlanFile file = smallTraining(accumulation).load();
    CpuExecutor plain(file, {.threads = 1});
    AheadExecutor ahead(file);
    const Outcome expected = outcomeOf(file, plain, 7), found = outcomeOf(file, ahead, 7);
    EXPECT_EQ(found.losses, expected.losses);
    EXPECT_EQ(found.w, expected.w);
    // Behind each step but the last; of several runs those of a step alone.
    EXPECT_EQ(ahead.besides, accumulation == 1 ? 6 : 7 * 2);
  }
}

TEST(Ahead, NoStepIsBegunThatPoliciesMayChange) {
  const PlanFile file = smallTraining().load();
  AheadExecutor executor(file);
  SessionOptions options;
  options.policies = {{"loss-spike", "3"}};
  Session session(file, executor, options);
  session.advance(/*goesOn=*/true);
  EXPECT_FALSE(session.hasBegun());
  EXPECT_EQ(executor.besides, 0);
}

TEST(Ahead, ALossThatIsNoNumberStopsTraining) {
  const PlanFile file = smallTraining().load();
  AheadExecutor executor(file);
  Session session(file, executor, {});
  const std::array<float, 4> bad = {NAN, 0, 0, 0};
  executor.write(file.plan().variables()->Get(0)->tensor(), std::as_bytes(std::span(bad)));
  try {
    session.advance(/*goesOn=*/true);
    ADD_FAILURE();
  } catch (const support::Error &error) {
    EXPECT_STREQ(error.what(), "step 1: the loss is nan; learning rate 0.5; 1 of 1 parameters are "
                               "not finite now, the first is w");
  }
  EXPECT_FALSE(session.hasBegun());
  EXPECT_FALSE(session.isSound());
  EXPECT_EQ(executor.inFlight(), 0U);
}

TEST(Ahead, WhatKeepsAStepFromBeginningIsSaidBehindTheOneInFront) {
  const PlanFile file = smallTraining().load();
  CpuExecutor plain(file, {.threads = 1});
  AheadExecutor executor(file);
  const Outcome expected = outcomeOf(file, plain, 2);
  Session session(file, executor, optionsFor());
  int starts = 0;
  executor.beforeStart = [&] { ++starts; };
  executor.beforeWrite = [&] {
    if (starts == 2)
      support::fail("no third batch");
  };
  EXPECT_EQ(session.advance(/*goesOn=*/true), expected.losses[0]);
  EXPECT_EQ(session.advance(/*goesOn=*/true), expected.losses[1]);
  EXPECT_FALSE(session.hasBegun());
  EXPECT_THROW(session.advance(), support::Error);
  EXPECT_TRUE(session.isSound());
  EXPECT_EQ(session.steps(), 2);
  EXPECT_EQ(weights(file, executor), expected.w);
}

TEST(Ahead, ParametersThatAStepMayHaveChangedAreNotSound) {
  const PlanFile file = smallTraining().load();
  AheadExecutor executor(file);
  Session session(file, executor, optionsFor());
  int starts = 0;
  executor.behindStart = [&] {
    if (++starts == 2)
      support::fail("no end of the run");
  };
  session.advance(/*goesOn=*/true);
  EXPECT_FALSE(session.hasBegun());
  EXPECT_FALSE(session.isSound());
  EXPECT_THROW(session.advance(), support::Error);
  EXPECT_FALSE(session.isSound());
}

TEST(Ahead, AnErrorBetweenStepsLeavesNoneInFlight) {
  for (const uint32_t accumulation : {1U, 4U}) {
    const PlanFile file = smallTraining(accumulation).load();
    AheadExecutor executor(file);
    Session session(file, executor, optionsFor());
    int starts = 0;
    executor.behindStart = [&] {
      if (++starts == 3)
        support::fail("no end of the run");
    };
    EXPECT_THROW(for (int i = 0; i < 4; ++i) session.advance(/*goesOn=*/true), support::Error);
    EXPECT_EQ(executor.inFlight(), 0U);
    EXPECT_FALSE(session.isSound());
  }
}

TEST(Ahead, OneBadStepTooManyHasNoneBehindIt) {
  PlanBuilder builder = smallTraining();
  // An update that says that it was refused, of a loss that is no number.
  const uint32_t applied = builder.tensor("applied", {}, SegmentKind::persistent);
  builder.output(*builder.plan.programs[0], "applied", applied);
  const PlanFile file = builder.load();
  for (const int64_t most : {1, 2, 3}) {
    AheadExecutor executor(file);
    SessionOptions options = optionsFor();
    options.maxBadSteps = most;
    Session session(file, executor, options);
    const std::array<float, 4> bad = {NAN, 0, 0, 0};
    executor.write(file.plan().variables()->Get(0)->tensor(), std::as_bytes(std::span(bad)));
    for (int64_t i = 1; i < most; ++i) {
      session.advance(/*goesOn=*/true);
      EXPECT_EQ(session.hasBegun(), i < most);
    }
    EXPECT_THROW(session.advance(/*goesOn=*/true), CommonError);
    EXPECT_EQ(session.steps(), most);
    EXPECT_EQ(executor.inFlight(), 0U);
    EXPECT_TRUE(session.isSound());
    EXPECT_EQ(executor.besides, most - 1);
  }
}

TEST(Ahead, NoCallIsBegunThatNeedsTheTokenOfAnother) {
  PlanBuilder builder = smallTraining();
  builder.plan.header->mode = "generate";
  for (const bool decodes : {false, true}) {
    if (decodes) {
      builder.plan.programs[0]->role = hydra::planfile::ProgramRole::decode;
      builder.plan.programs[0]->context = 3;
    }
    const PlanFile file = builder.load();
    AheadExecutor executor(file);
    Session session(file, executor, optionsFor());
    session.advance(/*goesOn=*/true);
    EXPECT_EQ(session.hasBegun(), !decodes);
  }
}

TEST(Ahead, CheckpointsAreOfTheirSteps) {
  const PlanFile file = smallTraining().load();
  const TemporaryFolder folder;
  constexpr int64_t steps = 23;
  const auto trained = [&](Executor &executor, const std::string &name) {
    Session session(file, executor, optionsFor(steps));
    TrainOptions options;
    options.steps = steps;
    options.save = folder.path / name;
    options.saveEvery = 5;
    options.keep = 100;
    options.evalEvery = 7;
    return train(file, executor, session, options).losses;
  };
  CpuExecutor plain(file, {.threads = 1});
  AheadExecutor ahead(file);
  EXPECT_EQ(trained(ahead, "ahead"), trained(plain, "plain"));
  EXPECT_EQ(parametersIn(folder.path / "ahead"), parametersIn(folder.path / "plain"));
  // Behind all but steps 5, 7, 10, 14, 15, 20, 21 and 23.
  EXPECT_EQ(ahead.besides, 23 - 8);
}

TEST(Ahead, ASignalEndsTheRunBehindTheStepThatBegan) {
  const PlanFile file = smallTraining().load();
  const TemporaryFolder folder;
  AheadExecutor executor(file);
  int starts = 0;
  executor.beforeStart = [&] {
    if (++starts == 9)
      std::raise(SIGINT);
  };
  Session session(file, executor, optionsFor(100));
  TrainOptions options;
  options.steps = 100;
  options.save = folder.path / "run";
  const TrainResult result = train(file, executor, session, options);
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_EQ(session.steps(), starts);
  EXPECT_LT(starts, 12);
  CpuExecutor plain(file, {.threads = 1});
  EXPECT_EQ(weights(file, executor), outcomeOf(file, plain, starts).w);
  EXPECT_EQ(parametersIn(folder.path / "run").begin()->first.substr(0, 13),
            fmt::format("step-{:08}", starts));
}
