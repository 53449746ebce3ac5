// Which rank this is, from the variables of each launcher.
#include "runtime/ranks/World.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <map>

using namespace hydra::runtime;

namespace {

World worldOf(const std::map<std::string, std::string> &variables) {
  return worldFromEnvironment([&](const char *name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

void expectProblem(const std::map<std::string, std::string> &variables, const std::string &part) {
  try {
    worldOf(variables);
    ADD_FAILURE() << "no error; expected " << part;
  } catch (const hydra::support::Error &error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

} // namespace

TEST(World, AloneWithoutVariables) {
  const World world = worldOf({{"MASTER_ADDR", "somewhere"}, {"SLURM_PROCID", "3"}});
  EXPECT_EQ(world.rank, 0u);
  EXPECT_EQ(world.size, 1u);
}

TEST(World, OfTorchrunBeforeOthers) {
  const World world = worldOf({{"RANK", "3"},
                               {"WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node7"},
                               {"MASTER_PORT", "1234"},
                               {"OMPI_COMM_WORLD_SIZE", "9"},
                               {"OMPI_COMM_WORLD_RANK", "8"}});
  EXPECT_EQ(world.rank, 3u);
  EXPECT_EQ(world.size, 4u);
  EXPECT_EQ(world.address, "node7");
  EXPECT_EQ(world.port, 1234);
  EXPECT_EQ(world.listener, -1);
  EXPECT_FALSE(world.launched); // by hand, with the same variables
}

TEST(World, LeavesTheAgentOfTorchrunItsPort) {
  EXPECT_EQ(worldOf({{"RANK", "0"},
                     {"WORLD_SIZE", "2"},
                     {"MASTER_PORT", "1234"},
                     {"TORCHELASTIC_USE_AGENT_STORE", "True"}})
                .port,
            1235);
}

TEST(World, OfOpenMpi) {
  std::map<std::string, std::string> variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                                                  {"OMPI_COMM_WORLD_SIZE", "2"},
                                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                                  {"PMIX_NAMESPACE", "prterun-4711"}};
  const World one = worldOf(variables);
  EXPECT_EQ(one.rank, 1u);
  EXPECT_EQ(one.address, "127.0.0.1");
  EXPECT_TRUE(one.launched);
  variables["OMPI_COMM_WORLD_RANK"] = "0";
  EXPECT_EQ(worldOf(variables).port, one.port);
  variables["PMIX_NAMESPACE"] = "prterun-4712";
  EXPECT_NE(worldOf(variables).port, one.port);
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  expectProblem(variables, "mpirun -x MASTER_ADDR=NAME");
  variables["MASTER_ADDR"] = "node1";
  EXPECT_EQ(worldOf(variables).address, "node1");
}

TEST(World, OfSlurmSteps) {
  std::map<std::string, std::string> variables = {{"SLURM_PROCID", "5"},
                                                  {"SLURM_STEP_NUM_TASKS", "8"},
                                                  {"SLURM_JOB_ID", "77"},
                                                  {"SLURM_STEP_ID", "0"}};
  const std::map<std::string, std::string> lists = {{"node7", "node7"},
                                                    {"a,b[1-3]", "a"},
                                                    {"gpu[03-07,12]", "gpu03"},
                                                    {"gpu[12]", "gpu12"},
                                                    {"r[1-2]-ib,x", "r1-ib"}};
  for (const auto &[list, first] : lists) {
    variables["SLURM_STEP_NODELIST"] = list;
    EXPECT_EQ(worldOf(variables).address, first) << list;
  }
  EXPECT_EQ(worldOf(variables).rank, 5u);
  EXPECT_GE(worldOf(variables).port, 20000);
  EXPECT_LT(worldOf(variables).port, 28000);
}

TEST(World, OneOfEachMachineSpeaksWhereRankZeroCannot) {
  const auto speaks = [](const char *rank, const char *localRank) {
    return worldOf({{"RANK", rank}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", localRank}}).speaks;
  };
  EXPECT_TRUE(speaks("1", "1"));
  EXPECT_FALSE(speaks("3", "3"));
  EXPECT_TRUE(speaks("4", "0"));
  EXPECT_FALSE(speaks("5", "1"));
  EXPECT_TRUE(speaks("5", "")); // by hand: nobody knows who shares its machine
}

TEST(World, SaysWhatIsWrong) {
  expectProblem({{"RANK", "0"}}, "no WORLD_SIZE");
  expectProblem({{"WORLD_SIZE", "2"}}, "no RANK");
  expectProblem({{"RANK", "2"}, {"WORLD_SIZE", "2"}},
                "RANK=2 in the environment: expected a number from 0 to 1");
  expectProblem({{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "RANK=x");
  expectProblem({{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE=0");
  expectProblem({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}},
                "MASTER_PORT=70000");
}
