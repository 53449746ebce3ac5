// Several ranks as threads of one test.
#pragma once

#include "runtime/ranks/Channel.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace hydra::test {

/// A port of the loopback interface that was free just now.
inline uint16_t freePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr *>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

/// Runs the work as each of so many ranks, and returns what went wrong on each; the program would
/// print `said` of it.
struct RankOutcome {
  std::string error, said;
};
inline std::vector<RankOutcome>
asRanks(uint32_t ranks, const std::function<void(runtime::Channel &)> &work,
        std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  std::vector<RankOutcome> outcomes(ranks);
  const uint16_t port = freePort();
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      RankOutcome &outcome = outcomes[rank];
      try {
        runtime::World world;
        world.rank = rank;
        world.size = ranks;
        world.port = port;
        runtime::Channel channel(world, limit);
        try {
          work(channel);
          channel.finish();
        } catch (const std::exception &error) {
          outcome.error = error.what();
          outcome.said = channel.end(error);
        }
      } catch (const std::exception &error) {
        outcome.error = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return outcomes;
}

inline void expectNoErrors(const std::vector<RankOutcome> &outcomes) {
  for (size_t rank = 0; rank < outcomes.size(); ++rank)
    EXPECT_EQ(outcomes[rank].error, "") << "rank " << rank;
}

} // namespace hydra::test
