// Attributes by name and kind.
#include "runtime/plan/Attributes.h"
#include "runtime/support/Error.h"
#include "test/support/SamplePlan.h"

#include <gtest/gtest.h>

#include <functional>

using namespace hydra;
using namespace hydra::runtime;
using namespace hydra::test;

namespace {

std::string errorOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const support::Error &error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST(Attributes, ComeFromTheChosenAlternativeThenTheCall) {
  const PlanFile file = samplePlan().load();
  const auto &blocks = *file.plan().programs()->Get(0)->blocks();
  const Attributes attributes(*blocks.Get(kMatmul)->node_as_Step());
  EXPECT_EQ(attributes.function(), "matmul");
  EXPECT_EQ(attributes.integer("tile"), 64);
  EXPECT_TRUE(attributes.flag("transpose_a"));
  EXPECT_FALSE(attributes.flag("transpose_b", false));
  EXPECT_EQ(attributes.text("provider"), "onednn");
  EXPECT_EQ(attributes.text("layout", "dense"), "dense");
  EXPECT_EQ(attributes.integer("split", 1), 1);
  EXPECT_EQ(attributes.real("beta", 0.5), 0.5);
  EXPECT_EQ(errorOf([&] { attributes.real("alpha"); }),
            "step matmul: matmul needs the attribute alpha");
  EXPECT_EQ(errorOf([&] { attributes.integer("transpose_a", 1); }),
            "step matmul: attribute transpose_a of matmul is of kind flag; expected integer");
  EXPECT_EQ(errorOf([&] { Attributes(*blocks.Get(kAdamW)->node_as_Step()); }),
            "step adamw is no library call, so it has no attributes");
}

TEST(Attributes, MayBeEmptyText) {
  PlanBuilder builder;
  builder.program("eval", blocks(call("log", {}, attrs(attr("prefix", ""), attr("scale", 2.0)))));
  const PlanFile file = builder.load();
  const Attributes attributes(*file.plan().programs()->Get(0)->blocks()->Get(0)->node_as_Step());
  EXPECT_EQ(attributes.text("prefix"), "");
  EXPECT_EQ(attributes.real("scale"), 2.0);
}
