// Which bytes are poisoned.
#include "runtime/plan/Poison.h"
#include "test/support/PlanBuilder.h"

#include <gtest/gtest.h>

using namespace hydra::runtime;
using namespace hydra::test;
using hydra::planfile::InputKind;
using hydra::planfile::SegmentKind;

TEST(Poison, SparesTheInputsOfTheProgramAlone) {
  PlanBuilder builder;
  builder.tensor("a", {16});
  const uint32_t x = builder.tensor("x", {16});
  builder.tensor("b", {16});
  const uint32_t z = builder.tensor("z", {16});
  const uint64_t begin = builder.plan.tensors[x]->offset, last = builder.plan.tensors[z]->offset;
  // The first two of every four columns, and the third: their rows lie between each other's.
  const uint32_t part = builder.view("part", {4, 2}, {4, 1}, SegmentKind::transient, begin);
  const uint32_t third = builder.view("third", {4}, {4}, SegmentKind::transient, begin + 8);
  auto &one = builder.program("one", Blocks());
  builder.input(one, "part", InputKind::values, part);
  builder.input(one, "third", InputKind::values, third);
  builder.input(one, "z", InputKind::values, z);
  builder.program("two", Blocks());
  const PlanFile file = builder.load();
  const uint64_t size = file.plan().segments()->Get(1)->size();
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
  Ranges expected{{0, begin}, {begin + 15 * 4, last}};
  if (last + 64 < size)
    expected.emplace_back(last + 64, size);
  EXPECT_EQ(unwrittenBytes(file.plan(), *file.plan().programs()->Get(0)), expected);
  EXPECT_EQ(unwrittenBytes(file.plan(), *file.plan().programs()->Get(1)), (Ranges{{0, size}}));
}
