// Several ranks as processes of one test: for what is said of one process, as signals are.
#pragma once

#include "runtime/ranks/Channel.h"
#include "runtime/ranks/HeldSignal.h"
#include "test/support/TemporaryFolder.h"
#include "test/unit/ranks/TestRanks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hydra::test {

/// How a rank has ended.
struct RankEnd {
  int status = -1;    ///< -1: by a signal
  std::string told;   ///< what its work has returned
  std::string errors; ///< what it wrote to standard error
};

/// Runs the work as each of so many ranks, as hydra-run does, in processes that know nothing of
/// each other but by their channel. `beside` gets their numbers. Fails when an expectation of the
/// work does, and when a rank does not end.
inline std::vector<RankEnd>
asProcesses(uint32_t ranks, const std::function<std::string(runtime::Channel &)> &work,
            const std::function<void(std::span<const pid_t>)> &beside = {},
            std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  using namespace std::chrono_literals;
  constexpr int kExpectationFailed = 99;
  const TemporaryFolder folder;
  const auto file = [&](const char *what, uint32_t rank) {
    return folder.path / fmt::format("{}-{}", what, rank);
  };
  const uint16_t port = freePort();
  std::vector<pid_t> pids;
  std::fflush(nullptr);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    pids.push_back(::fork());
    if (pids.back() != 0)
      continue;
    for (const auto &[what, stream] : {std::pair("errors", STDERR_FILENO), {"out", STDOUT_FILENO}})
      ::dup2(::open(file(what, rank).c_str(), O_CREAT | O_APPEND | O_WRONLY, 0600), stream);
    std::signal(SIGPIPE, SIG_IGN);
    runtime::World world;
    world.rank = rank;
    world.size = ranks;
    world.port = port;
    int status = 0;
    std::string line;
    try {
      const runtime::HeldSignal held;
      runtime::Channel channel(world, limit);
      try {
        std::ofstream(file("told", rank)) << work(channel);
        channel.finish();
      } catch (const std::exception &error) {
        status = 1;
        line = channel.end(error);
      }
    } catch (const std::exception &error) {
      status = 1;
      line = error.what();
    }
    if (!line.empty())
      std::fprintf(stderr, "hydra-run: %s\n", line.c_str());
    std::fflush(nullptr);
    std::_Exit(testing::Test::HasFailure() ? kExpectationFailed : status);
  }
  if (beside)
    beside(pids);
  const auto until = std::chrono::steady_clock::now() + 60s;
  std::vector<RankEnd> ends(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    int status = 0;
    while (::waitpid(pids[rank], &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > until && ::kill(pids[rank], SIGKILL) == 0)
        ADD_FAILURE() << "rank " << rank << " does not end";
      std::this_thread::sleep_for(2ms);
    }
    const auto contentOf = [&](const char *what) {
      std::ifstream content(file(what, rank));
      return std::string(std::istreambuf_iterator<char>(content), {});
    };
    ends[rank] = {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contentOf("told"),
                  contentOf("errors")};
    EXPECT_NE(ends[rank].status, kExpectationFailed) << "rank " << rank << ":\n"
                                                     << contentOf("out");
  }
  return ends;
}

} // namespace hydra::test
