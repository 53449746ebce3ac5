// Several ranks whose devices are given the next step before the end of the one in front: all of
// them make the same steps, whatever happens to one.
#include "runtime/ranks/Plugin.h"
#include "runtime/run/Session.h"
#include "runtime/run/Trainer.h"
#include "runtime/support/Error.h"
#include "runtime/support/Safetensors.h"
#include "runtime/support/StopSignal.h"
#include "test/support/TemporaryFolder.h"
#include "test/unit/cpu/AheadExecutor.h"
#include "test/unit/cpu/SmallTraining.h"
#include "test/unit/ranks/TestProcesses.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace hydra::runtime;
using namespace hydra::test;
using namespace std::chrono_literals;
using hydra::planfile::SegmentKind;
namespace planfile = hydra::planfile;
namespace support = hydra::support;

namespace {

/// smallTraining, in every program of which the ranks meet: who runs one alone waits.
PlanBuilder meetingTraining(uint32_t ranks, uint32_t accumulation = 1) {
  PlanBuilder builder = smallTraining(accumulation);
  const uint32_t axis = builder.axis("data", ranks);
  uint32_t loss = 0;
  while (builder.plan.tensors[loss]->name != "loss")
    ++loss;
  const uint32_t losses = builder.tensor("losses", {ranks}, SegmentKind::persistent);
  for (auto &program : builder.plan.programs) {
    if (program->role == planfile::ProgramRole::apply)
      continue; // it has no loss
    planfile::AllGatherT gather;
    gather.axis = axis;
    program->blocks.push_back(call(gather, {reads(loss), writes(losses)}));
  }
  return builder;
}

/// Of a plan to which nothing but tokens and labels is given, and each rank has rows of its own.
PlanBuilder trainingOnRows(PlanBuilder builder) {
  const uint32_t goal = builder.plan.variables[builder.variable("goal", {4}, 1.0)]->tensor;
  for (auto &program : builder.plan.programs) {
    std::erase_if(program->inputs, [](const auto &input) { return input->name == "target"; });
    for (auto &input : program->inputs)
      input->batch_dimension = 0;
    for (auto &block : program->blocks)
      for (planfile::Arg &arg : block->node.AsStep()->args)
        if (builder.plan.tensors[arg.tensor()]->name == "target")
          arg = reads(goal);
  }
  return builder;
}

/// What one rank runs the plan with.
struct Member {
  Member(const PlanFile &file, Channel &channel)
      : channel(channel), communicator(connectRanks({{"data", channel.size()}}, channel)),
        ahead(file, communicator.get()) {}

  Channel &channel;
  std::unique_ptr<Communicator> communicator;
  AheadExecutor ahead;
};

SessionOptions optionsFor(Ranks *ranks, int64_t steps = 0) {
  SessionOptions options;
  options.seed = 5;
  options.steps = steps;
  options.ranks = ranks;
  return options;
}

TrainOptions trainOptionsFor(Ranks *ranks, int64_t steps, const std::filesystem::path &save) {
  TrainOptions options;
  options.ranks = ranks;
  options.steps = steps;
  options.save = save;
  options.keep = 1000;
  options.logEvery = 1'000'000;
  return options;
}

/// Of a run of one rank that waits for each step, which is given what all ranks are.
std::vector<double> lossesOfOne(int64_t steps, uint32_t accumulation = 1) {
  const PlanFile file = smallTraining(accumulation).load();
  CpuExecutor executor(file, {.threads = 1});
  Session session(file, executor, optionsFor(nullptr));
  std::vector<double> losses;
  while (session.steps() < steps)
    losses.push_back(session.advance());
  return losses;
}

/// What checkpoints have of parameters and states, by their steps.
using Checkpoints = std::map<int64_t, std::map<std::string, std::string>>;

Checkpoints checkpointsIn(const std::filesystem::path &folder) {
  Checkpoints all;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-"))
      continue;
    auto &files = all[std::stoll(name.substr(5))];
    for (const auto &file : std::filesystem::directory_iterator(entry.path()))
      if (file.path().extension() == ".safetensors") {
        std::ifstream content(file.path(), std::ios::binary);
        files[file.path().filename().string()] = {std::istreambuf_iterator<char>(content), {}};
      }
  }
  EXPECT_FALSE(all.empty());
  return all;
}

int64_t newestIn(const std::filesystem::path &folder) {
  const Checkpoints all = checkpointsIn(folder);
  return all.empty() ? 0 : all.rbegin()->first;
}

/// Those of a run of one rank that was not interrupted; `every`: as --save-every.
Checkpoints checkpointsOfOne(int64_t steps, int64_t every = 0) {
  const TemporaryFolder folder;
  const PlanFile file = smallTraining().load();
  CpuExecutor executor(file, {.threads = 1});
  Session session(file, executor, optionsFor(nullptr, steps));
  TrainOptions options = trainOptionsFor(nullptr, steps, folder.path / "run");
  options.saveEvery = every;
  train(file, executor, session, options);
  return checkpointsIn(folder.path / "run");
}

/// All lines of standard error, of all ranks.
std::vector<std::string> linesOf(const std::vector<RankEnd> &ends) {
  std::vector<std::string> lines;
  for (const RankEnd &end : ends)
    for (size_t at = 0; at < end.errors.size();) {
      const size_t next = std::min(end.errors.find('\n', at), end.errors.size());
      lines.push_back(end.errors.substr(at, next - at));
      at = next + 1;
    }
  return lines;
}

/// `what` of the only line.
void expectOneLine(const std::vector<RankEnd> &ends, const std::string &what) {
  const std::vector<std::string> lines = linesOf(ends);
  ASSERT_EQ(lines.size(), 1U) << fmt::format("{}", lines);
  EXPECT_NE(lines[0].find(what), std::string::npos) << lines[0];
}

/// A run of as many steps as it takes until it is ended, and how it ended. `every`: as
/// --save-every.
std::string trainEndlessly(const PlanFile &file, Channel &channel,
                           const std::filesystem::path &folder, int64_t every = 2,
                           const std::function<void(Member &)> &prepare = {}) {
  Member member(file, channel);
  if (prepare)
    prepare(member);
  constexpr int64_t endless = 1'000'000'000;
  Session session(file, member.ahead, optionsFor(&channel, endless));
  TrainOptions options = trainOptionsFor(&channel, endless, folder);
  options.saveEvery = every;
  options.keep = 3;
  const TrainResult result = train(file, member.ahead, session, options);
  EXPECT_EQ(member.ahead.inFlight(), 0U);
  EXPECT_EQ(member.ahead.starts, session.steps());
  return fmt::format("signal {} after {}", result.signal, session.steps());
}

/// Waits until a run has saved this step.
void awaitCheckpoint(const std::filesystem::path &folder, int64_t step) {
  for (const auto until = std::chrono::steady_clock::now() + 30s;
       std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(1ms))
    if (std::error_code code;
        std::filesystem::exists(folder / fmt::format("step-{:08}", step), code))
      return;
  ADD_FAILURE() << "no checkpoint";
}

/// Whether a process has ended; who has made it can still wait for it.
bool hasEnded(pid_t process, bool waits) {
  siginfo_t info{};
  const int flags = WEXITED | WNOWAIT | (waits ? 0 : WNOHANG);
  return ::waitid(P_PID, static_cast<id_t>(process), &info, flags) == 0 && info.si_pid == process;
}

} // namespace

TEST(RanksAhead, StepsLeaveWhatTheyLeaveOneByOne) {
  for (const uint32_t ranks : {2U, 3U})
    for (const uint32_t accumulation : {1U, 3U}) {
      constexpr int steps = 9;
      const std::vector<double> expected = lossesOfOne(steps, accumulation);
      const PlanFile file = meetingTraining(ranks, accumulation).load();
      expectNoErrors(asRanks(ranks, [&](Channel &channel) {
        Member member(file, channel);
        Session session(file, member.ahead, optionsFor(&channel));
        for (int i = 0; i < steps; ++i)
          EXPECT_EQ(session.advance(/*goesOn=*/i + 1 < steps), expected[static_cast<size_t>(i)]);
        EXPECT_EQ(member.ahead.besides, accumulation == 1 ? steps - 1 : steps * 2);
      }));
    }
}

TEST(RanksAhead, CheckpointsAreOfTheirSteps) {
  constexpr int64_t steps = 23;
  const PlanFile file = meetingTraining(2).load();
  // Both ahead; or one of them, which is its own affair.
  for (const uint32_t aheads : {2U, 1U}) {
    const TemporaryFolder folder;
    const auto ends = asProcesses(2, [&](Channel &channel) {
      const bool isAhead = channel.rank() < aheads;
      std::optional<Member> member;
      std::unique_ptr<Communicator> communicator;
      std::optional<CpuExecutor> plain;
      if (isAhead) {
        member.emplace(file, channel);
      } else {
        communicator = connectRanks({{"data", 2}}, channel);
        plain.emplace(file, CpuOptions{.threads = 1, .ranks = communicator.get()});
      }
      Executor &executor = isAhead ? static_cast<Executor &>(member->ahead) : *plain;
      Session session(file, executor, optionsFor(&channel, steps));
      TrainOptions options = trainOptionsFor(&channel, steps, folder.path / "run");
      options.saveEvery = 5;
      options.evalEvery = 7;
      const TrainResult result = train(file, executor, session, options);
      // Behind all but steps 5, 7, 10, 14, 15, 20, 21 and 23.
      EXPECT_EQ(isAhead ? member->ahead.besides : 15, 15);
      return fmt::format("{}", result.losses);
    });
    for (const RankEnd &end : ends) {
      EXPECT_EQ(end.status, 0) << end.errors;
      EXPECT_EQ(end.told, fmt::format("{}", lossesOfOne(steps)));
    }
    EXPECT_EQ(checkpointsIn(folder.path / "run"), checkpointsOfOne(steps, 5));
  }
}

TEST(RanksAhead, ASignalToOneEndsAllBehindTheSameStep) {
  const PlanFile file = meetingTraining(3).load();
  for (const uint32_t victim : {0U, 1U, 2U}) {
    const TemporaryFolder folder;
    const auto ends = asProcesses(3, [&](Channel &channel) {
      return trainEndlessly(file, channel, folder.path / "run", 0, [&](Member &member) {
        if (channel.rank() == victim)
          member.ahead.beforeStart = [&] {
            if (member.ahead.starts == 9)
              std::raise(SIGINT);
          };
      });
    });
    const int64_t step = newestIn(folder.path / "run");
    EXPECT_GE(step, 9);
    EXPECT_LE(step, 10); // voted on while a step ran that had begun
    for (const RankEnd &end : ends)
      EXPECT_EQ(end.told, fmt::format("signal {} after {}", SIGINT, step)) << end.errors;
    EXPECT_EQ(checkpointsIn(folder.path / "run"), checkpointsOfOne(step));
  }
}

TEST(RanksAhead, SignalsAtAnyMomentEndAllBehindTheSameStep) {
  std::mt19937 random(3);
  Checkpoints expected = checkpointsOfOne(100);
  const PlanFile file = meetingTraining(2).load();
  for (int round = 0; round < 6; ++round) {
    const TemporaryFolder folder;
    const auto save = folder.path / "run";
    const auto trained = [&](Channel &channel) {
      Member member(file, channel);
      const std::filesystem::path newest = save / fmt::format("step-{:08}", newestIn(save));
      const Checkpoint checkpoint(newest, file);
      SessionOptions options = optionsFor(&channel, 100);
      options.resume = &checkpoint;
      Session session(file, member.ahead, options);
      train(file, member.ahead, session, trainOptionsFor(&channel, 100, save));
      return std::string();
    };
    const auto ends = asProcesses(
        2,
        [&](Channel &channel) {
          Member member(file, channel);
          Session session(file, member.ahead, optionsFor(&channel, 100));
          TrainOptions options = trainOptionsFor(&channel, 100, save);
          options.saveEvery = 4;
          options.evalEvery = 7;
          // Slow enough for a signal to come while it trains.
          member.ahead.beforeStart = [] { std::this_thread::sleep_for(10ms); };
          const TrainResult result = train(file, member.ahead, session, options);
          return fmt::format("signal {} after {}", result.signal, session.steps());
        },
        [&](std::span<const pid_t> pids) {
          awaitCheckpoint(save, 4);
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 50'000));
          ::kill(pids[static_cast<size_t>(round) % 2], round % 3 == 0 ? SIGINT : SIGTERM);
        });
    const int64_t step = newestIn(save);
    for (const RankEnd &end : ends)
      EXPECT_EQ(end.told,
                fmt::format("signal {} after {}", round % 3 == 0 ? SIGINT : SIGTERM, step))
          << end.errors;
    if (step < 100)
      asProcesses(2, trained);
    EXPECT_EQ(checkpointsIn(save)[100], expected[100]);
  }
}

TEST(RanksAhead, ADeadRankEndsTheOthersWithOneLine) {
  const PlanFile file = meetingTraining(3).load();
  for (const uint32_t victim : {0U, 2U}) {
    const TemporaryFolder folder;
    std::chrono::steady_clock::time_point died;
    const auto ends = asProcesses(
        3, [&](Channel &channel) { return trainEndlessly(file, channel, folder.path / "run"); },
        [&](std::span<const pid_t> pids) {
          awaitCheckpoint(folder.path / "run", 2);
          ::kill(pids[victim], SIGKILL);
          died = std::chrono::steady_clock::now();
        });
    EXPECT_LT(std::chrono::steady_clock::now() - died, 5s);
    for (uint32_t rank = 0; rank < 3; ++rank)
      EXPECT_EQ(ends[rank].status, rank == victim ? -1 : 1);
    expectOneLine(ends, "died after step");
    expectOneLine(ends, "; resume from ");
  }
}

TEST(RanksAhead, AStoppedRankEndsTheOthersWithOneLine) {
  const PlanFile file = meetingTraining(2).load();
  const TemporaryFolder folder;
  const auto ends = asProcesses(
      2, [&](Channel &channel) { return trainEndlessly(file, channel, folder.path / "run"); },
      [&](std::span<const pid_t> pids) {
        awaitCheckpoint(folder.path / "run", 2);
        ::kill(pids[1], SIGSTOP);
        EXPECT_TRUE(hasEnded(pids[0], /*waits=*/true));
        ::kill(pids[1], SIGKILL); // who is stopped does not end
      },
      2s);
  EXPECT_EQ(ends[0].status, 1);
  expectOneLine(ends, "rank 1 (host ");
  expectOneLine(ends, "has not answered for 2 s");
}

TEST(RanksAhead, ASecondSignalEndsARankAtOnce) {
  const PlanFile file = meetingTraining(2).load();
  const TemporaryFolder folder;
  const auto ends = asProcesses(
      2, [&](Channel &channel) { return trainEndlessly(file, channel, folder.path / "run"); },
      [&](std::span<const pid_t> pids) {
        awaitCheckpoint(folder.path / "run", 2);
        ::kill(pids[1], SIGSTOP); // so that rank 0 cannot heed the first one
        for (int i = 0; i < 2; ++i) {
          ::kill(pids[0], SIGINT);
          std::this_thread::sleep_for(200ms);
        }
        EXPECT_TRUE(hasEnded(pids[0], /*waits=*/false));
        ::kill(pids[1], SIGKILL);
      });
  EXPECT_TRUE(linesOf(ends).empty());
}

TEST(RanksAhead, WhatKeepsOneFromBeginningEndsAllWithItsLine) {
  const PlanFile file = meetingTraining(2).load();
  const TemporaryFolder folder;
  const auto ends = asProcesses(2, [&](Channel &channel) {
    return trainEndlessly(file, channel, folder.path / "run", 0, [&](Member &member) {
      if (channel.rank() == 1)
        member.ahead.beforeWrite = [&] {
          if (member.ahead.starts == 9)
            support::fail("no tenth batch");
        };
    });
  });
  EXPECT_EQ(ends[0].status, 1);
  EXPECT_EQ(ends[1].status, 1);
  expectOneLine(ends, "no tenth batch");
}

TEST(RanksAhead, ALossThatIsNoNumberStopsAll) {
  const PlanFile file = meetingTraining(2).load();
  const auto ends = asProcesses(2, [&](Channel &channel) {
    Member member(file, channel);
    Session session(file, member.ahead, optionsFor(&channel, 100));
    const std::array<float, 4> bad = {NAN, 0, 0, 0};
    member.ahead.write(file.plan().variables()->Get(0)->tensor(), std::as_bytes(std::span(bad)));
    TrainOptions options;
    options.ranks = &channel;
    options.steps = 100;
    try {
      train(file, member.ahead, session, options);
    } catch (...) {
      EXPECT_EQ(member.ahead.besides, 1);
      EXPECT_EQ(member.ahead.inFlight(), 0U);
      EXPECT_FALSE(session.isSound());
      throw;
    }
    return std::string();
  });
  EXPECT_EQ(ends[0].status, 1);
  EXPECT_EQ(ends[1].status, 1);
  expectOneLine(ends, "step 1: the loss is nan; learning rate 0.5; 1 of 1 parameters are not "
                      "finite now, the first is w");
}

TEST(RanksAhead, TextThatOneCannotReadEndsAllBehindTheSameStep) {
  const PlanFile file = trainingOnRows(meetingTraining(2)).load();
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    const TemporaryFolder folder;
    std::vector<uint16_t> tokens(4000, 3);
    tokens[500 + random() % 2500] = 4321;
    std::ofstream(folder.path / "text.bin", std::ios::binary)
        .write(reinterpret_cast<const char *>(tokens.data()),
               static_cast<std::streamsize>(2 * tokens.size()));
    const auto ends = asProcesses(2, [&](Channel &channel) {
      Member member(file, channel);
      TextOptions data;
      data.files = {folder.path / "text.bin"};
      data.tokenizer = "uint16";
      data.threads = round % 2;
      data.evalBatches = 1;
      data.rank = channel.rank();
      TextSource text(file.plan(), data);
      SessionOptions options = optionsFor(&channel, 1'000'000);
      options.text = &text;
      Session session(file, member.ahead, options);
      TrainOptions how = trainOptionsFor(&channel, 1'000'000, folder.path / "run");
      if (round >= 2)
        how.evalEvery = 4;
      try {
        train(file, member.ahead, session, how);
      } catch (...) {
        EXPECT_EQ(member.ahead.inFlight(), 0U);
        EXPECT_TRUE(session.isSound());
        // Where nothing is measured between, all steps but the first are begun ahead.
        if (round < 2)
          EXPECT_EQ(member.ahead.besides, session.steps() - 1);
        std::ofstream(folder.path / fmt::format("steps-{}", channel.rank())) << session.steps();
        throw;
      }
      return std::string();
    });
    EXPECT_EQ(ends[0].status, 1);
    EXPECT_EQ(ends[1].status, 1);
    expectOneLine(ends, "4321");
    int64_t steps[2] = {};
    for (int rank = 0; rank < 2; ++rank)
      std::ifstream(folder.path / fmt::format("steps-{}", rank)) >> steps[rank];
    EXPECT_EQ(steps[0], steps[1]);
    EXPECT_EQ(newestIn(folder.path / "run"), steps[0]);
  }
}

/// Of a session of one rank, too.
TEST(RanksAhead, BatchesAreOfTheirStepsWhoeverDrawsThem) {
  const PlanFile file = trainingOnRows(smallTraining()).load();
  const TemporaryFolder folder;
  std::ofstream(folder.path / "text.bin", std::ios::binary) << [] {
    std::string tokens;
    for (int i = 0; i < 4000; ++i)
      tokens += {static_cast<char>(i / 7 % 8), '\0'};
    return tokens;
  }();
  TextOptions data;
  data.files = {folder.path / "text.bin"};
  data.tokenizer = "uint16";
  std::vector<std::string> seen;
  for (const bool drawsAhead : {false, true}) {
    TextSource text(file.plan(), data);
    AheadExecutor executor(file);
    SessionOptions options = optionsFor(nullptr);
    options.text = &text;
    Session session(file, executor, options);
    seen.emplace_back();
    while (session.steps() < 9) {
      session.begin();
      if (drawsAhead)
        EXPECT_EQ(session.drawAhead(session.steps() + 1), "");
      session.advance(/*goesOn=*/session.steps() % 3 != 2);
      if (session.hasBegun())
        continue;
      std::array<int32_t, 6> ids{};
      executor.read(file.plan().programs()->Get(0)->inputs()->Get(0)->tensor(),
                    std::as_writable_bytes(std::span(ids)));
      seen.back() += fmt::format("{}: {}\n", session.steps(), ids);
    }
    EXPECT_EQ(executor.besides, 6);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(RanksAhead, AStepHasLabelsWhereAnyRankHasOne) {
  const PlanFile file = trainingOnRows(meetingTraining(2)).load();
  const TemporaryFolder folder;
  for (const bool any : {true, false}) {
    const std::vector<int32_t> tokens(12, 1);
    std::vector<int32_t> labels(12, -100);
    if (any)
      labels.back() = 1; // of rank 1
    const auto path = folder.path / fmt::format("labels-{}.safetensors", any);
    support::writeSafetensors(
        path, std::vector<support::TensorView>{
                  {{"tokens", support::DType::I32, {4, 3}}, std::as_bytes(std::span(tokens))},
                  {{"labels", support::DType::I32, {4, 3}}, std::as_bytes(std::span(labels))}});
    expectNoErrors(asRanks(2, [&](Channel &channel) {
      Member member(file, channel);
      SessionOptions options = optionsFor(&channel);
      options.inputs = path;
      Session session(file, member.ahead, options);
      for (int i = 0; i < 5; ++i) {
        session.advance(/*goesOn=*/i < 4);
        EXPECT_EQ(session.hasLabels(), any);
      }
      EXPECT_EQ(member.ahead.besides, 4);
    }));
  }
}
