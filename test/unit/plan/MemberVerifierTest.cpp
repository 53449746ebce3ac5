// Members of units: where ranks hold them, and one plan per rule, broken in exactly that rule.
#include "runtime/plan/VariablePart.h"

#include "runtime/plan/Mesh.h"

#include "test/unit/plan/DamageCase.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace hydra::test {

using namespace planfile;

namespace {

/// Variables 3 to 5 of the sample: w2 [3, 4] and b2 [5] at 2 and 16 of a unit of 24 elements that
/// three ranks have in pieces [2, 4], and a copy of w2 in bf16 at 1 of a unit [16] that each has
/// whole.
PlanBuilder unitPlan() {
  PlanBuilder builder = samplePlan();
  builder.axis("replica", 2);
  const uint32_t data = builder.axis("data", 3);
  const uint32_t pieces = builder.tensor("unit", {2, 4}, SegmentKind::persistent);
  const uint32_t whole = builder.tensor("unit.bf16", {16}, SegmentKind::persistent, DType::bf16);
  const uint32_t w = builder.member("w2", pieces, {3, 4}, 2, {data});
  builder.member("b2", pieces, {5}, 16, {data});
  const uint32_t copy = builder.member("w2.bf16", whole, {3, 4}, 1);
  builder.plan.variables[copy]->role = VariableRole::copy;
  builder.plan.variables[copy]->owner = static_cast<int32_t>(w);
  return builder;
}

class UnitRules : public testing::TestWithParam<DamageCase> {};

MemberT &memberOf(PlanT &plan, size_t variable) { return *plan.variables[variable]->member; }

std::vector<DamageCase> cases() {
  return {
      {"Dimension", [](PlanT &p) { memberOf(p, 3).shape[1] = 0; },
       "variables[3].member.shape[1]: 0 is no valid dimension; expected 1 or more, and at most "
       "281474976710656 elements in all"},
      {"DimensionsOverflow",
       [](PlanT &p) { memberOf(p, 3).shape = {int64_t{1} << 40, int64_t{1} << 40}; },
       "variables[3].member.shape[1]: 1099511627776 is no valid dimension; expected 1 or more, and "
       "at most 281474976710656 elements in all"},
      {"Axis", [](PlanT &p) { memberOf(p, 4).axes = {1, 2}; },
       "variables[4].member.axes[1]: 2 is no axis of a mesh of 2"},
      {"AxisTwice", [](PlanT &p) { memberOf(p, 4).axes = {1, 0, 1}; },
       "variables[4].member.axes[2]: 1 is there twice"},
      {"AxisWithoutMesh", [](PlanT &p) { p.mesh.clear(); },
       "variables[3].member.axes[0]: 1 is no axis of a mesh of 0"},
      {"OtherAxis", [](PlanT &p) { memberOf(p, 4).axes.clear(), memberOf(p, 4).offset = 3; },
       "variables[4].member.axes: [] is another than the [1] of w2, in the same unit"},
      {"OtherOrderOfAxes",
       [](PlanT &p) {
         memberOf(p, 3).axes = {1, 0};
         memberOf(p, 4).axes = {0, 1};
       },
       "variables[4].member.axes: [0, 1] is another than the [1, 0] of w2, in the same unit"},
      {"End", [](PlanT &p) { memberOf(p, 4).offset = 20; },
       "variables[4].member: 5 elements from 20 on reach beyond the 24 of the unit"},
      {"OffsetHuge", [](PlanT &p) { memberOf(p, 4).offset = ~uint64_t{0}; },
       "variables[4].member: 5 elements from 18446744073709551615 on reach beyond the 24 of the "
       "unit"},
      {"Overlap", [](PlanT &p) { memberOf(p, 3).offset = 5; },
       "variables[4].member: b2 shares elements with w2"},
      {"WholeVariableInAUnit", [](PlanT &p) { p.variables[4]->member = nullptr; },
       "variables[4]: b2 shares bytes with w2"},
      {"Strides", [](PlanT &p) { p.tensors[p.variables[5]->tensor]->strides = {0}; },
       "variables[5].tensor: unit.bf16 has strides of its own; a unit is dense"},
      {"Transient",
       [](PlanT &p) { p.tensors[p.variables[3]->tensor]->segment = SegmentKind::transient; },
       "variables[3].tensor: unit is in the transient segment; expected the persistent one"},
      {"CopyOfAnotherShape", [](PlanT &p) { memberOf(p, 5).shape = {12}; },
       "variables[5].owner: w2 has another shape"},
      {"TableOfAnotherSize",
       [](PlanT &p) {
         p.variables[4]->initializer->kind = InitKind::shuffle;
         p.variables[4]->initializer->table = {1, 2, 3, 4};
       },
       "variables[4].initializer.table: has 4 values for a tensor with 5 elements"},
  };
}

} // namespace

TEST_P(UnitRules, AreEnforced) {
  PlanBuilder builder = unitPlan();
  GetParam().damage(builder.plan);
  EXPECT_EQ(errorOf(builder), "plan.fb: " + GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(Damage, UnitRules, testing::ValuesIn(cases()), nameOfCase);

TEST(VariablePart, OfAMemberIsWhatLiesInTheRanksPiece) {
  const runtime::PlanFile file = unitPlan().load();
  const Plan &plan = file.plan();
  using Expected = std::tuple<int64_t, int64_t, int64_t, bool>; // first, count, place, isFirst
  using Axes = std::vector<uint32_t>;
  const auto check = [&](uint32_t variable, uint64_t rank, const Axes &axes, Expected expected) {
    const runtime::VariablePart part(plan, *plan.variables()->Get(variable), rank);
    EXPECT_EQ(std::tuple(part.first, part.count, part.place, part.isFirst), expected)
        << "variable " << variable << ", rank " << rank;
    EXPECT_EQ(part.axes, axes);
  };
  EXPECT_EQ(runtime::shapeOf(plan, *plan.variables()->Get(3)), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(runtime::elementsOf(plan, *plan.variables()->Get(4)), 5);
  for (const uint64_t replica : {0, 1}) {
    const uint64_t rank = 3 * replica;
    const bool isFirst = replica == 0;
    check(3, rank, {1}, {0, 6, 2, isFirst});
    check(3, rank + 1, {1}, {6, 6, 0, isFirst});
    check(3, rank + 2, {1}, {12, 0, 0, isFirst});
    check(4, rank, {1}, {0, 0, 0, isFirst});
    check(4, rank + 1, {1}, {0, 0, 0, isFirst});
    check(4, rank + 2, {1}, {0, 5, 0, isFirst});
  }
  for (uint64_t rank = 0; rank < 6; ++rank) {
    check(0, rank, {}, {0, 32, 0, rank == 0}); // no member
    check(5, rank, {}, {0, 12, 1, rank == 0}); // of a unit that is not cut
  }
  EXPECT_TRUE(runtime::cutsVariables(plan));
  EXPECT_FALSE(runtime::cutsVariables(samplePlan().load().plan()));
}

// Those of a node, the inner axis, have three pieces [4], and nodes two of each.
TEST(VariablePart, OfSeveralAxesTheFirstCutsLargerPieces) {
  PlanBuilder builder = samplePlan();
  const uint32_t node = builder.axis("node", 2), data = builder.axis("data", 3);
  const uint32_t unit = builder.tensor("unit", {2, 2}, SegmentKind::persistent);
  builder.member("w2", unit, {20}, 3, {data, node});
  const runtime::PlanFile file = builder.load();
  const Plan &plan = file.plan();
  // Of each rank: its piece of four among those of 24.
  const uint64_t pieces[] = {0, 2, 4, 1, 3, 5};
  for (uint64_t rank = 0; rank < 6; ++rank) {
    const runtime::VariablePart part(plan, *plan.variables()->Get(3), rank);
    const auto begin = static_cast<int64_t>(pieces[rank]) * 4;
    EXPECT_EQ(part.first, std::max<int64_t>(begin - 3, 0)) << rank;
    EXPECT_EQ(part.end(), std::clamp<int64_t>(begin + 4 - 3, 0, 20)) << rank;
    EXPECT_TRUE(part.isFirst);
    EXPECT_EQ(runtime::coordinateOf(plan, rank, part.axes), pieces[rank]);
    EXPECT_EQ(runtime::distanceOf(plan, part.axes, pieces[rank]), rank);
  }
  const runtime::VariablePart any(plan, *plan.variables()->Get(3), 0);
  EXPECT_EQ(runtime::sizeOf(plan, any.axes), 6u);
  EXPECT_EQ(runtime::axesText(plan, any.axes), "data*node");
}

} // namespace hydra::test
