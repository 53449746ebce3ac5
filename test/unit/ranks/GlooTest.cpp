// Bytes that ranks move by the plug-in, between threads and between processes.
#include "runtime/ranks/Plugin.h"
#include "test/unit/ranks/TestRanks.h"

#include <sys/wait.h>

#include <csignal>
#include <random>

using namespace hydra::runtime;
using namespace hydra::test;
using namespace std::chrono_literals;

namespace {

/// What rank `rank` sends in round `round`.
std::vector<std::byte> sent(uint32_t rank, uint32_t round, size_t bytes) {
  std::mt19937 random(rank * 1000 + round);
  std::vector<std::byte> values(bytes);
  for (std::byte &value : values)
    value = static_cast<std::byte>(random());
  return values;
}

/// Both collectives along all axes, with sizes from one byte to more than any socket buffers.
void exchange(Channel &channel, const std::vector<NamedAxis> &mesh) {
  const std::unique_ptr<Communicator> ranks = connectRanks(mesh, channel);
  ASSERT_EQ(ranks->rank(), channel.rank());
  uint32_t round = 0, inner = ranks->size();
  for (uint32_t axis = 0; axis < mesh.size(); ++axis) {
    const uint32_t extent = mesh[axis].size;
    inner /= extent;
    const uint32_t coordinate = ranks->rank() / inner % extent;
    const uint32_t first = ranks->rank() - coordinate * inner;
    for (const size_t piece : {1, 12, 4096, 100'000, 3'000'000}) {
      ++round;
      const std::vector<std::byte> x = sent(ranks->rank(), round, piece);
      std::vector<std::byte> y(piece * extent), expected;
      ranks->allGather({.axis = axis, .x = x.data(), .y = y.data(), .bytes = piece});
      for (uint32_t i = 0; i < extent; ++i) {
        const std::vector<std::byte> part = sent(first + i * inner, round, piece);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      EXPECT_EQ(y, expected) << "all_gather of " << piece << " over axis " << axis;

      ++round;
      const std::vector<std::byte> all = sent(ranks->rank(), round, piece * extent);
      ranks->allToAll({.axis = axis, .x = all.data(), .y = y.data(), .bytes = piece * extent});
      expected.clear();
      for (uint32_t i = 0; i < extent; ++i) {
        const std::vector<std::byte> theirs = sent(first + i * inner, round, piece * extent);
        const auto begin = theirs.begin() + static_cast<ptrdiff_t>(coordinate * piece);
        expected.insert(expected.end(), begin, begin + static_cast<ptrdiff_t>(piece));
      }
      EXPECT_EQ(y, expected) << "all_to_all of " << piece << " over axis " << axis;
    }
  }
}

uint32_t ranksOf(const std::vector<NamedAxis> &mesh) {
  uint32_t ranks = 1;
  for (const NamedAxis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

} // namespace

TEST(Gloo, MovesBytesAlongEveryAxis) {
  const std::vector<std::vector<NamedAxis>> meshes = {{{"data", 2}},
                                                      {{"data", 3}},
                                                      {{"data", 4}},
                                                      {{"replica", 2}, {"data", 2}},
                                                      {{"replica", 2}, {"data", 3}},
                                                      {{"replica", 1}, {"data", 2}}};
  for (const std::vector<NamedAxis> &mesh : meshes)
    expectNoErrors(asRanks(ranksOf(mesh), [&](Channel &channel) { exchange(channel, mesh); }));
}

TEST(Gloo, ALostRankIsAnErrorOfTheCallAndNamed) {
  std::signal(SIGPIPE, SIG_IGN); // as hydra-run does: Gloo writes to what is closed
  const uint16_t port = freePort();
  World world;
  world.size = 2;
  world.port = port;
  const pid_t child = ::fork();
  if (child == 0) {
    world.rank = 1;
    Channel channel(world, 20s);
    const auto ranks = connectRanks({{"data", 2}}, channel);
    channel.decide("");
    ::kill(::getpid(), SIGKILL);
  }
  Channel channel(world, 20s);
  const auto ranks = connectRanks({{"data", 2}}, channel);
  channel.decide("");
  std::vector<std::byte> x(8), y(16);
  try {
    ranks->allGather({.axis = 0, .x = x.data(), .y = y.data(), .bytes = 8});
    ADD_FAILURE();
  } catch (const CommunicationError &error) {
    const std::string said = channel.end(error);
    EXPECT_NE(said.find("rank 1 (host "), std::string::npos) << said;
    EXPECT_NE(said.find("died: its connection broke off"), std::string::npos) << said;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}
