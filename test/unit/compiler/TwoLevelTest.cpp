// Which axes of a mesh become two, inside of nodes and across them.
#include "compiler/TwoLevel.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <fmt/ranges.h>

using namespace hydra;

namespace {

CompileOptions optionsFor(const std::string &target, std::vector<std::string> mesh) {
  CompileOptions options;
  options.target = Target::named(target);
  options.binding.mesh = std::move(mesh);
  return options;
}

/// The mesh that becomes of one, and the ranks of a node: `data.node:8,data:8 of 8`.
std::string factored(CompileOptions options) {
  factorAtNodes(options);
  return fmt::format("{} of {}", fmt::join(options.binding.mesh, ","), options.nodeRanks);
}

std::string always(int64_t nodeRanks, std::vector<std::string> mesh) {
  CompileOptions options = optionsFor("cpu", std::move(mesh));
  options.twoLevel = TwoLevel::Always;
  options.nodeRanks = nodeRanks;
  return factored(options);
}

void expectProblem(CompileOptions options, const std::string &expected) {
  try {
    factorAtNodes(options);
    ADD_FAILURE() << "no error; expected " << expected;
  } catch (const support::Error &error) {
    EXPECT_EQ(std::string(error.what()), expected);
  }
}

} // namespace

TEST(TwoLevel, AnAxisThatCrossesNodesIsTwoWhereThatIsFaster) {
  EXPECT_EQ(factored(optionsFor("h200", {"data:64"})), "data.node:8,data:8 of 8");
  EXPECT_EQ(factored(optionsFor("h200", {"data:1024"})), "data.node:128,data:8 of 8");
  EXPECT_EQ(factored(optionsFor("h200", {"replica:2", "data:32"})),
            "replica:2,data.node:4,data:8 of 8");
  // Its links are as fast as its network: two levels would take one more exchange.
  EXPECT_EQ(factored(optionsFor("cpu", {"data:4"})), "data:4 of 0");
}

TEST(TwoLevel, WhatDoesNotCrossStaysAsItIs) {
  for (const std::vector<std::string> &mesh : std::vector<std::vector<std::string>>{
           {}, {"data:8"}, {"data:6"}, {"replica:8", "data:8"}, {"a:3", "b:2", "c:4"}}) {
    CompileOptions options = optionsFor("h200", mesh);
    factorAtNodes(options);
    EXPECT_EQ(options.binding.mesh, mesh);
  }
  // Nodes do not divide it, and nobody has asked.
  EXPECT_EQ(factored(optionsFor("h200", {"data:12"})), "data:12 of 0");
  // What binding refuses.
  EXPECT_EQ(factored(optionsFor("h200", {"data:0"})), "data:0 of 0");
  EXPECT_EQ(factored(optionsFor("h200", {"data"})), "data of 0");
}

TEST(TwoLevel, OnlyWhereRanksExchangeThatMuch) {
  CompileOptions options = optionsFor("h200", {"data:64"});
  for (const Sharding sharding : {Sharding::Ddp, Sharding::Zero1, Sharding::Fsdp}) {
    options.sharding = sharding;
    options.mode = Mode::Train;
    EXPECT_EQ(factored(options), "data.node:8,data:8 of 8");
    options.mode = Mode::Forward; // gathers parameters, or nothing
    EXPECT_EQ(factored(options),
              sharding == Sharding::Ddp ? "data:64 of 0" : "data.node:8,data:8 of 8");
  }
  options = optionsFor("h200", {"data:64"});
  options.mode = Mode::Grad;
  EXPECT_EQ(factored(options), "data.node:8,data:8 of 8");
}

// Whatever the mesh becomes, a rank has as much as before.
TEST(TwoLevel, WhatIsCutStaysCutOverAllRanks) {
  const auto levelsOf = [](std::vector<std::string> mesh, int64_t nodeRanks) {
    CompileOptions options = optionsFor("h200", std::move(mesh));
    options.sharding = Sharding::Fsdp;
    options.nodeRanks = nodeRanks;
    factorAtNodes(options);
    return options.shardLevels;
  };
  EXPECT_EQ(levelsOf({"data:64"}, 0), 2);
  EXPECT_EQ(levelsOf({"replica:2", "data:32"}, 0), 2);
  EXPECT_EQ(levelsOf({"data:8"}, 0), 1);
  EXPECT_EQ(levelsOf({"node:8", "data:8"}, 0), 1);     // copies on each node, as asked
  EXPECT_EQ(levelsOf({"replica:16", "data:4"}, 8), 1); // another axis crosses nodes
}

TEST(TwoLevel, NodesAreAsLargeAsOneSays) {
  EXPECT_EQ(always(2, {"data:4"}), "data.node:2,data:2 of 2");
  EXPECT_EQ(always(8, {"replica:8", "data:4"}), "replica.node:4,replica:2,data:4 of 8");
  EXPECT_EQ(always(4, {"data:4", "model:2"}), "data.node:2,data:2,model:2 of 4");
  EXPECT_EQ(always(4, {"node:2", "gpu:4"}), "node:2,gpu:4 of 4"); // by hand
  EXPECT_EQ(always(1, {"data:4"}), "data:4 of 1");
  CompileOptions options = optionsFor("h200", {"data:64"});
  options.nodeRanks = 4;
  factorAtNodes(options);
  EXPECT_EQ(fmt::format("{}", fmt::join(options.binding.mesh, ",")), "data.node:16,data:4");
  EXPECT_EQ(options.target.links.nodeRanks, 4);
  options = optionsFor("h200", {"data:64"});
  options.nodeRanks = 4;
  options.twoLevel = TwoLevel::Never;
  factorAtNodes(options);
  EXPECT_EQ(options.binding.mesh.front(), "data:64");
  EXPECT_EQ(options.nodeRanks, 0);
  EXPECT_EQ(options.target.links.nodeRanks, 4); // what exchanges take depends on it all the same
}

TEST(TwoLevel, RefusesNodesThatDoNotDivide) {
  CompileOptions options = optionsFor("h200", {"replica:2", "data:12"});
  options.twoLevel = TwoLevel::Always;
  expectProblem(options, "--mesh=replica:2,data:12: nodes of 8 ranks do not divide axis 'data'; "
                         "expected another size, or another --node-ranks");
  options.twoLevel = TwoLevel::Auto;
  options.nodeRanks = 5;
  expectProblem(options, "--mesh=replica:2,data:12: nodes of 5 ranks do not divide axis 'data'; "
                         "expected another size, or another --node-ranks");
  options = optionsFor("null", {"data:4"});
  options.twoLevel = TwoLevel::Always;
  expectProblem(options, "--two-level=always: null does not say how many ranks share a node; "
                         "expected --node-ranks=N");
}
