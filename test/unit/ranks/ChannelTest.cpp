// The control channel between ranks that are threads of the test, or processes.
#include "test/unit/ranks/TestProcesses.h"
#include "test/unit/ranks/TestRanks.h"

#include <array>
#include <atomic>
#include <cstring>

using namespace hydra::runtime;
using namespace hydra::test;
using namespace std::chrono_literals;
using hydra::support::Error;
using hydra::support::fail;

namespace {

std::vector<std::byte> bytesOf(const std::string &text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

void expectPart(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

} // namespace

TEST(Channel, TheStoreGivesWhatAnyRankHasSet) {
  expectNoErrors(asRanks(4, [](Channel &channel) {
    const std::string own = std::to_string(channel.rank());
    if (channel.rank() == 2)
      std::this_thread::sleep_for(50ms); // others wait for it
    channel.set("key " + own, bytesOf("value " + own));
    for (uint32_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(channel.get("key " + std::to_string(rank)),
                bytesOf("value " + std::to_string(rank)));
  }));
}

TEST(Channel, GathersOnRankZeroInOrderOfRanks) {
  expectNoErrors(asRanks(3, [](Channel &channel) {
    for (const size_t bytes : {0, 1, 100'000, 5'000'000}) {
      const std::vector<std::byte> own(bytes, static_cast<std::byte>(channel.rank() + 1));
      const auto all = channel.gather(own);
      ASSERT_EQ(all.size(), channel.rank() == 0 ? 3u : 0u);
      for (size_t rank = 0; rank < all.size(); ++rank)
        EXPECT_EQ(all[rank], std::vector<std::byte>(bytes, static_cast<std::byte>(rank + 1)));
    }
  }));
}

TEST(Channel, DecidesOnVotesInTheirOrder) {
  expectNoErrors(asRanks(3, [](Channel &channel) {
    for (int i = 0; i < 200; ++i)
      channel.post({.signal = channel.rank() == 1 && i == 150 ? 15 : 0,
                    .error = channel.rank() == 2 && i == 160 ? "no text" : ""});
    for (int i = 0; i < 200; ++i) {
      const Vote decision = channel.collect();
      EXPECT_EQ(decision.signal, i == 150 ? 15 : 0);
      EXPECT_EQ(decision.error.empty(), i != 160);
      if (i == 160)
        expectPart(decision.error, "rank 2 (host ");
    }
  }));
}

TEST(Channel, BroadcastsWhatRankZeroHas) {
  expectNoErrors(asRanks(3, [](Channel &channel) {
    for (const std::string text : {"first", "", "third"})
      EXPECT_EQ(channel.broadcast(bytesOf(channel.rank() == 0 ? text : "own")), bytesOf(text));
  }));
}

TEST(Channel, MeetsWithTheErrorOfTheLowestRankAndGoesOn) {
  expectNoErrors(asRanks(3, [](Channel &channel) {
    channel.meet("");
    const auto errorOf = [&](const std::string &own) -> std::string {
      try {
        channel.meet(own);
      } catch (const CommonError &error) {
        return error.what();
      }
      return "";
    };
    const std::string two =
        errorOf(channel.rank() > 0 ? "no room " + std::to_string(channel.rank()) : "");
    expectPart(two, "rank 1 (host ");
    expectPart(two, "): no room 1");
    EXPECT_EQ(errorOf("no room " + std::to_string(channel.rank())), "no room 0");
    EXPECT_EQ(errorOf(""), "");
  }));
}

TEST(Channel, RanksAgreeByGroups) {
  expectNoErrors(asRanks(4, [](Channel &channel) {
    const uint64_t column = channel.rank() % 2;
    channel.agree({{"whole", "5"}, {"pieces", std::to_string(column), column}});
  }));
  const auto outcomes = asRanks(4, [](Channel &channel) {
    const uint64_t column = channel.rank() % 2;
    channel.agree({{"whole", "5"}, {"pieces", channel.rank() == 3 ? "x" : "y", column}});
  });
  expectPart(outcomes[0].error, "rank 1 (host ");
  expectPart(outcomes[0].error, ") has pieces y, rank 3 (host ");
  expectPart(outcomes[0].error, ") has x");
}

TEST(Channel, RanksThatDisagreeAreNamed) {
  const auto outcomes = asRanks(3, [](Channel &channel) {
    channel.agree({{"--steps", "5"}, {"--seed", ""}});
    channel.agree({{"--steps", "5"}, {"--seed", channel.rank() == 1 ? "7" : ""}});
  });
  for (const RankOutcome &outcome : outcomes)
    expectPart(outcome.error, "has --seed none, rank 1 (host ");
  expectPart(outcomes[0].said, ") has 7");
  EXPECT_EQ(outcomes[1].said, "");
  EXPECT_EQ(outcomes[2].said, "");
}

TEST(Channel, AnErrorOfOneRankEndsAllAndIsSaidOnce) {
  const auto outcomes = asRanks(3, [](Channel &channel) {
    if (channel.rank() == 1)
      fail("cannot read data.bin");
    channel.collect(); // of a vote that nobody makes
  });
  expectPart(outcomes[0].said, "rank 1 (host ");
  expectPart(outcomes[0].said, ": cannot read data.bin");
  EXPECT_EQ(outcomes[1].said, "");
  EXPECT_EQ(outcomes[2].said, "");
  expectPart(outcomes[2].error, "ended on another rank");
}

TEST(Channel, TheSameErrorOnAllRanksIsSaidOnceByRankZero) {
  const auto outcomes = asRanks(3, [](Channel &channel) {
    std::this_thread::sleep_for(channel.rank() * 20ms);
    fail("the loss is nan");
  });
  EXPECT_EQ(outcomes[0].said, "the loss is nan");
  EXPECT_EQ(outcomes[1].said + outcomes[2].said, "");
}

TEST(Channel, AnErrorThatIsDecidedLeavesRankZeroTimeToSave) {
  const auto outcomes = asRanks(2, [](Channel &channel) {
    try {
      channel.decide(channel.rank() == 1 ? "token 7 is 300" : "");
    } catch (const Error &) {
      if (channel.rank() == 0)
        std::this_thread::sleep_for(1500ms); // longer than others' errors wait
      throw;
    }
  });
  expectPart(outcomes[0].said, "rank 1 (host ");
  expectPart(outcomes[0].said, ": token 7 is 300");
  EXPECT_EQ(outcomes[1].said, "");
}

namespace {

/// Three ranks after step 7, of which one closes its channel without a goodbye, as if its process
/// were killed. What each of them would print.
std::vector<std::string> saidWithout(uint32_t victim, bool newer = false) {
  const uint16_t port = freePort();
  std::vector<std::string> said(3);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      World world;
      world.rank = rank;
      world.size = 3;
      world.port = port;
      Channel channel(world, 20s);
      if (rank == 0)
        channel.noteCheckpoint({5, "run/step-00000005"});
      if (newer)
        channel.lookForCheckpoints([] { return SavedStep{8, "run/step-00000008"}; });
      channel.noteStep(7);
      channel.decide("");
      if (rank == victim)
        return;
      try {
        channel.collect();
      } catch (const std::exception &error) {
        said[rank] = channel.end(error);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return said;
}

} // namespace

TEST(Channel, ARankThatGoesWithoutAWordIsNamed) {
  const std::vector<std::string> said = saidWithout(2);
  expectPart(said[0], "rank 2 (host ");
  expectPart(said[0], "died after step 7: its connection broke off; resume from run/step-00000005");
  EXPECT_EQ(said[1], "");
}

TEST(Channel, TheLowestOtherRankNamesRankZero) {
  const std::vector<std::string> said = saidWithout(0);
  expectPart(said[1], "rank 0 (host ");
  expectPart(said[1], "died after step 7: its connection broke off; resume from run/step-00000005");
  EXPECT_EQ(said[2], "");
}

TEST(Channel, ACheckpointThatNobodyCouldTellOfIsFound) {
  for (const uint32_t victim : {0, 2})
    expectPart(saidWithout(victim, true)[victim == 0 ? 1 : 0],
               " died after step 8: its connection broke off; resume from run/step-00000008");
}

TEST(Channel, RanksThatDoNotComeAreNamed) {
  World world;
  world.size = 3;
  world.port = freePort();
  try {
    const Channel channel(world, 300ms);
    ADD_FAILURE();
  } catch (const Error &error) {
    expectPart(error.what(), "1 of 3 ranks came within 0.3 s; missing: 1, 2");
  }
  world.rank = 1;
  try {
    const Channel channel(world, 300ms);
    ADD_FAILURE();
  } catch (const Error &error) {
    expectPart(error.what(), "rank 1: cannot reach rank 0 at 127.0.0.1:");
    expectPart(error.what(), "within 0.3 s: Connection refused");
  }
  world.rank = 2;
  world.speaks = false; // rank 1 says it
  EXPECT_THROW(Channel(world, 300ms), RunEnded);
}

TEST(Channel, APortThatIsTakenIsNamed) {
  World world;
  world.size = 2;
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr *>(&address), size), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  ::getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size);
  world.port = ntohs(address.sin_port);
  try {
    const Channel channel(world, 300ms);
    ADD_FAILURE();
  } catch (const Error &error) {
    expectPart(error.what(), "Address already in use; choose another MASTER_PORT");
  }
  world.rank = 1; // it listens, but says nothing
  try {
    const Channel channel(world, 300ms);
    ADD_FAILURE();
  } catch (const Error &error) {
    expectPart(error.what(), "does not answer as rank 0");
  }
  ::close(socket);
}

TEST(Channel, RanksOfAnotherWorldAreNamed) {
  const uint16_t port = freePort();
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      World world;
      world.rank = rank;
      world.size = rank == 0 ? 2 : 3;
      world.port = port;
      try {
        const Channel channel(world, 5s);
      } catch (const std::exception &error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  expectPart(errors[0], "counts 3 ranks, rank 0 (host ");
  expectPart(errors[0], ") counts 2");
  expectPart(errors[1], "ended on another rank");
}

TEST(Channel, StrangersAreIgnored) {
  const uint16_t port = freePort();
  World world;
  world.size = 2;
  world.port = port;
  std::thread zero([&] {
    Channel channel(world, 5s);
    channel.decide("");
    channel.finish();
  });
  for (const std::string &text :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(9, '\0'), std::string(9, '\xff')}) {
    for (int i = 0; i < 100; ++i) {
      const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      const int result = ::connect(socket, reinterpret_cast<sockaddr *>(&address), sizeof address);
      if (result == 0)
        (void)!::write(socket, text.data(), text.size());
      ::close(socket);
      if (result == 0)
        break;
      std::this_thread::sleep_for(10ms);
    }
  }
  World other = world;
  other.rank = 1;
  Channel channel(other, 5s);
  channel.decide("");
  channel.finish();
  zero.join();
}

TEST(Channel, RanksThatAllWaitTooLongAreSaidToHang) {
  const auto outcomes = asRanks(
      2,
      [](Channel &channel) {
        channel.waitIn({.what = "all_gather",
                        .axis = "data",
                        .number = 3 + channel.rank(),
                        .bytes = 4404019,
                        .place = channel.rank() == 0 ? "layer 3, models/ttt.mlir:182" : ""});
        channel.collect();
      },
      400ms);
  expectPart(outcomes[0].said, "no rank has got on for 0.4 s; rank 0 waits in all_gather 3 (layer "
                               "3, models/ttt.mlir:182) over data, 4.20 MiB; rank 1 waits in "
                               "all_gather 4 over data, 4.20 MiB");
  EXPECT_EQ(outcomes[1].said, "");
}

TEST(Channel, ARankThatWorksIsNotSaidToHang) {
  expectNoErrors(asRanks(
      2,
      [](Channel &channel) {
        if (channel.rank() == 0)
          std::this_thread::sleep_for(1s); // it saves
        else
          channel.waitIn({.what = "all_gather", .axis = "data", .number = 1, .bytes = 16});
        channel.decide("");
        channel.work();
      },
      300ms));
}

TEST(Channel, RanksThatWereAllStoppedHaveNotWaitedMeanwhile) {
  constexpr auto limit = 1s;
  std::array<int, 2> waiting{};
  ASSERT_EQ(::pipe(waiting.data()), 0);
  const auto ends = asProcesses(
      2,
      [&](Channel &channel) {
        channel.decide("");
        channel.waitIn({.what = "all_gather", .axis = "data", .number = 1, .bytes = 16});
        // From here until a time that is too long tells of the stop, and for some beats behind it.
        auto before = std::chrono::steady_clock::now();
        (void)!::write(waiting[1], "w", 1);
        for (auto now = before; now - before < limit; now = std::chrono::steady_clock::now()) {
          before = now;
          std::this_thread::sleep_for(10ms);
        }
        std::this_thread::sleep_for(limit / 4);
        channel.work();
        return std::string("went on");
      },
      [&](std::span<const pid_t> ranks) {
        std::string all(ranks.size(), ' ');
        for (char &one : all)
          (void)!::read(waiting[0], &one, 1);
        for (const pid_t rank : ranks)
          ::kill(rank, SIGSTOP);
        std::this_thread::sleep_for(2 * limit);
        for (const pid_t rank : ranks)
          ::kill(rank, SIGCONT);
      },
      limit);
  for (const int end : waiting)
    ::close(end);
  for (const RankEnd &end : ends)
    EXPECT_EQ(end.told, "went on") << end.errors;
}

TEST(Channel, RanksOfOneMachineKnowHowManyShareIt) {
  expectNoErrors(asRanks(3, [](Channel &channel) {
    EXPECT_EQ(channel.sharers(), 3u);
    EXPECT_EQ(channel.localAddress(), "127.0.0.1");
  }));
}
