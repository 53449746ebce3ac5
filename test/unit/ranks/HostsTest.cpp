// Ranks of a node that are on several hosts are told so, with what to do.
#include "runtime/ranks/Hosts.h"

#include <gtest/gtest.h>

#include <vector>

using namespace hydra::runtime;

namespace {

std::string problemOf(const std::vector<std::string> &hosts, uint64_t nodeRanks) {
  return nodesProblem(hosts, nodeRanks);
}

} // namespace

TEST(Hosts, RanksOfANodeShareOne) {
  EXPECT_EQ(problemOf({"a", "a", "b", "b"}, 2), "");
  EXPECT_EQ(problemOf({"a", "a", "a", "a"}, 2), "");
  EXPECT_EQ(problemOf({"a", "b", "c"}, 1), "");
  EXPECT_EQ(problemOf({"a", "a"}, 8), "");
  EXPECT_EQ(problemOf({}, 2), "");
}

TEST(Hosts, SaysWhatToDo) {
  EXPECT_EQ(problemOf({"a", "a", "b", "b"}, 4),
            "is for nodes of 4 ranks, but rank 1 is on a and rank 2 on b; compile it with "
            "--node-ranks=2");
  EXPECT_EQ(problemOf({"a", "b", "a", "b"}, 2),
            "is for nodes of 2 ranks, but rank 0 is on a and rank 1 on b; start those of a host "
            "one behind the other (mpirun --map-by slot, srun --distribution=block)");
  EXPECT_EQ(problemOf({"a", "a", "a", "b"}, 2),
            "is for nodes of 2 ranks, but rank 2 is on a and rank 3 on b; start equally many on "
            "each, or compile it with --two-level=never");
}
