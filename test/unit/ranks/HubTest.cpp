// What rank 0 concludes from what it hears, and from what it does not hear.
#include "runtime/ranks/Hub.h"

#include <gtest/gtest.h>

using namespace hydra::runtime;
using namespace std::chrono_literals;

namespace {

/// Rank 0 of so many ranks, at a time that the test moves on.
class HubRun {
public:
  explicit HubRun(uint32_t ranks)
      : ranks(ranks),
        hub(who(0), 60s, now,
            {.send = [this](uint32_t rank, const Message &m) { sent.emplace_back(rank, m.type); },
             .gathered = [](const Hub::Pieces &) {},
             .over = [this](const Ending &why) { line = why.line(proven); }}) {}

  static Introduction who(uint32_t rank, uint32_t size = 3) {
    return {
        .version = 1, .rank = rank, .size = size, .host = "h", .pid = 10 + rank, .processors = ""};
  }
  void arriveAll() {
    for (uint32_t rank = 1; rank < ranks; ++rank)
      ASSERT_TRUE(hub.arrive(who(rank), now));
  }
  /// A second passes, in which all but `silent` say that they wait for so many milliseconds; 0:
  /// work.
  void second(std::optional<uint32_t> silent = std::nullopt, int64_t waiting = 0) {
    now += 1s;
    for (uint32_t rank = 0; rank < ranks; ++rank)
      if (rank != silent)
        hub.receive(rank,
                    MessageWriter(MessageType::beat)
                        .number(7)
                        .number(waiting)
                        .text(waiting > 0 ? "all_gather 4 over data (8 bytes)" : "")
                        .done(),
                    now);
    hub.tick(now);
  }

  uint32_t ranks;
  Hub::Clock::time_point now = Hub::Clock::now();
  Hub hub;
  std::vector<std::pair<uint32_t, MessageType>> sent;
  std::string line;
  int64_t proven = -1; // by a checkpoint
};

} // namespace

TEST(Hub, WelcomesWhenAllAreThere) {
  HubRun run(3);
  EXPECT_TRUE(run.hub.arrive(HubRun::who(2), run.now));
  EXPECT_TRUE(run.sent.empty());
  EXPECT_TRUE(run.hub.arrive(HubRun::who(1), run.now));
  EXPECT_EQ(run.sent.size(), 3u);
  EXPECT_TRUE(run.hub.complete());
}

TEST(Hub, ForgetsWhatAllHaveAskedFor) {
  HubRun run(3);
  run.arriveAll();
  run.sent.clear();
  const std::string handed = std::string(Hub::kBroadcast) + "0", kept = "address of rank 1";
  const auto set = [&](const std::string &key) {
    const std::vector<std::byte> value(4);
    run.hub.receive(0, MessageWriter(MessageType::set).text(key).bytes(value).done(), run.now);
  };
  const auto get = [&](uint32_t rank, const std::string &key) {
    run.hub.receive(rank, MessageWriter(MessageType::get).text(key).done(), run.now);
    return run.sent.size();
  };
  set(handed);
  set(kept);
  EXPECT_EQ(get(1, handed), 1u);
  EXPECT_EQ(get(2, handed), 2u);
  EXPECT_EQ(get(1, handed), 2u); // nobody asks twice: it is gone
  EXPECT_EQ(get(1, kept), 3u);
  EXPECT_EQ(get(2, kept), 4u);
  EXPECT_EQ(get(1, kept), 5u);
}

TEST(Hub, RefusesWhoDoesNotFit) {
  HubRun twice(3);
  EXPECT_TRUE(twice.hub.arrive(HubRun::who(2), twice.now));
  EXPECT_FALSE(twice.hub.arrive(HubRun::who(2), twice.now));
  EXPECT_NE(twice.line.find("are the same rank"), std::string::npos) << twice.line;
  HubRun first(3);
  EXPECT_FALSE(first.hub.arrive(HubRun::who(0), first.now));
  EXPECT_NE(first.line.find("expected ranks 1 to 2"), std::string::npos) << first.line;
  HubRun other(3);
  Introduction old = HubRun::who(1);
  old.version = 0;
  EXPECT_FALSE(other.hub.arrive(old, other.now));
  EXPECT_NE(other.line.find("use the same hydra-run everywhere"), std::string::npos) << other.line;
}

TEST(Hub, ASilentRankEndsTheRunAfterTheLimit) {
  HubRun run(3);
  run.arriveAll();
  for (int i = 0; i < 58; ++i)
    run.second(1, 1000 * i);
  EXPECT_EQ(run.line, "");
  for (int i = 0; i < 4; ++i)
    run.second(1, 58'000);
  EXPECT_EQ(run.line.rfind("rank 1 (host h, pid 11) has not answered for 60 s; rank 0 waits in "
                           "all_gather 4 over data (8 bytes); rank 2 waits in ",
                           0),
            0u)
      << run.line;
}

TEST(Hub, OneThatWorksWhileOthersWaitIsLeftAlone) {
  HubRun run(3);
  run.arriveAll();
  for (int i = 0; i < 300; ++i)
    run.second();
  EXPECT_EQ(run.line, "");
  for (int i = 0; i < 61; ++i)
    run.second(std::nullopt, 1000 * i);
  EXPECT_NE(run.line.find("no rank has got on for 60 s"), std::string::npos) << run.line;
}

TEST(Hub, AProcessThatWasStoppedItselfBlamesNobody) {
  HubRun run(3);
  run.arriveAll();
  run.second();
  run.now += 1h;
  run.hub.tick(run.now);
  EXPECT_EQ(run.line, "");
  run.second();
  EXPECT_EQ(run.line, "");
}

TEST(Hub, ADeathIsToldBeforeWhatFollowsFromIt) {
  HubRun run(3);
  run.arriveAll();
  run.second();
  run.hub.receive(1, MessageWriter(MessageType::failed).number(1).text("lost another rank").done(),
                  run.now);
  run.now += 100ms;
  run.hub.lose(2, run.now);
  for (int i = 0; i < 5; ++i)
    run.hub.tick(run.now += 100ms);
  EXPECT_EQ(
      run.line.rfind("rank 2 (host h, pid 12) died after step 7: its connection broke off", 0), 0u)
      << run.line;
}

TEST(Hub, WhatFollowsIsToldWhenNothingElseIsKnown) {
  HubRun run(3);
  run.arriveAll();
  run.hub.receive(1, MessageWriter(MessageType::failed).number(1).text("lost another rank").done(),
                  run.now);
  for (int i = 0; i < 30; ++i)
    run.hub.tick(run.now += 100ms);
  EXPECT_NE(run.line.find("rank 1 (host h, pid 11): lost another rank"), std::string::npos)
      << run.line;
}

TEST(Hub, AnErrorOfARankWaitsForRankZeroWhileThatReadsWhatTheRankHasRead) {
  for (const bool waits : {false, true}) {
    HubRun run(3);
    run.arriveAll();
    const auto beat = [&](const char *activity) {
      run.hub.receive(0, MessageWriter(MessageType::beat).number(0).number(0).text(activity).done(),
                      run.now);
    };
    beat("");
    run.hub.receive(1, MessageWriter(MessageType::failed).number(0).text("cannot read x").done(),
                    run.now);
    for (int i = 0; i < 30; ++i)
      run.hub.tick(run.now += 100ms);
    EXPECT_EQ(run.line, "");
    if (waits) { // for the others: it has read what it had to
      beat("all_gather 4 over data (8 bytes)");
      run.hub.tick(run.now += 100ms);
      EXPECT_EQ(run.line, "rank 1 (host h, pid 11): cannot read x");
      continue;
    }
    for (int i = 0; i < 20; ++i)
      run.hub.tick(run.now += 1s);
    EXPECT_EQ(run.line, "rank 1 (host h, pid 11): cannot read x");
  }
}

TEST(Hub, AnErrorOfARankIsToldSoonWhereRankZeroTrains) {
  HubRun run(3);
  run.arriveAll();
  run.second();
  run.hub.receive(1, MessageWriter(MessageType::failed).number(0).text("cannot read x").done(),
                  run.now);
  for (int i = 0; i < 11; ++i)
    run.hub.tick(run.now += 100ms);
  EXPECT_EQ(run.line, "rank 1 (host h, pid 11): cannot read x");
}

TEST(Hub, WhileRankZeroEndsTheRunADeathIsNotTold) {
  for (const bool needsOthers : {false, true}) {
    HubRun run(3);
    run.arriveAll();
    run.hub.leave();
    if (needsOthers) // to save with them
      run.hub.receive(0, MessageWriter(MessageType::piece).bytes({}).done(), run.now);
    run.hub.lose(2, run.now);
    for (int i = 0; i < 30; ++i)
      run.hub.tick(run.now += 100ms);
    EXPECT_EQ(run.line.find("rank 2 (host h, pid 12) died") == 0, needsOthers) << run.line;
  }
}

TEST(Hub, ADeathIsAfterTheStepThatTheRankHadEndedWhenItVoted) {
  HubRun run(3);
  run.arriveAll();
  run.hub.receive(2, MessageWriter(MessageType::vote).number(0).text("").number(61).done(),
                  run.now);
  run.hub.receive(2, MessageWriter(MessageType::beat).number(12).number(0).text("").done(),
                  run.now);
  run.hub.lose(2, run.now);
  run.hub.tick(run.now += 1s);
  EXPECT_EQ(run.line, "rank 2 (host h, pid 12) died after step 61: its connection broke off");
}

TEST(Hub, ADeathIsNotBeforeTheStepThatACheckpointProves) {
  for (const bool silent : {false, true}) {
    HubRun run(3);
    run.arriveAll();
    run.proven = 62;
    run.hub.receive(2, MessageWriter(MessageType::vote).number(0).text("").number(61).done(),
                    run.now);
    if (!silent)
      run.hub.lose(2, run.now);
    for (int i = 0; i < 70; ++i)
      run.second(2);
    EXPECT_EQ(run.line.find(silent ? "rank 2 (host h, pid 12) after step 62 has not answered"
                                   : "rank 2 (host h, pid 12) died after step 62: "),
              0u)
        << run.line;
  }
}

TEST(Hub, ADeathIsToldAfterRankZeroHasMetItWhileItEndedTheRun) {
  HubRun run(3);
  run.arriveAll();
  run.hub.leave(); // after an error of its own, for which it saves with the others
  run.hub.lose(2, run.now);
  run.hub.receive(0, MessageWriter(MessageType::failed).number(1).text("lost another rank").done(),
                  run.now);
  for (int i = 0; i < 30; ++i)
    run.hub.tick(run.now += 100ms);
  EXPECT_EQ(run.line.find("rank 2 (host h, pid 12) died"), 0u) << run.line;
}
