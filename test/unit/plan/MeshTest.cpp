// What a plan says of the machines of its ranks.
#include "runtime/plan/Mesh.h"
#include "test/support/SamplePlan.h"

#include <gtest/gtest.h>

using namespace hydra;
using namespace hydra::test;

TEST(Mesh, AnOptionSaysHowManyRanksShareANode) {
  const auto nodeRanks = [](const char *text) {
    PlanBuilder builder = samplePlan();
    if (text) {
      auto option = std::make_unique<planfile::KeyValueT>();
      option->key = "node-ranks";
      option->value = text;
      builder.plan.header->options.push_back(std::move(option));
    }
    const auto file = runtime::PlanFile::parse(runtime::encodePlan(builder.plan), "plan.fb");
    return runtime::nodeRanksOf(file.plan());
  };
  EXPECT_EQ(nodeRanks("8"), 8u);
  EXPECT_EQ(nodeRanks(nullptr), 0u);
  EXPECT_EQ(nodeRanks("many"), 0u); // of files nothing is believed
}
