// What ranks hold of variables: together, what one rank alone has.
#include "runtime/run/Variables.h"

#include "runtime/run/FirstValues.h"
#include "runtime/support/DType.h"
#include "runtime/support/Initializers.h"
#include "runtime/support/Int4Groups.h"
#include "runtime/support/Int8Rows.h"
#include "runtime/support/Safetensors.h"
#include "runtime/support/SplitFloat.h"
#include "test/unit/cpu/SharedVariables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

using namespace hydra::runtime;
using namespace hydra::test;
namespace planfile = hydra::planfile;
namespace support = hydra::support;

namespace {

class Variables : public SharedVariables {};

/// Of the units of a rank, the elements that are not zero.
size_t nonZeros(const planfile::Plan &plan, Member &member) {
  size_t count = 0;
  std::set<uint32_t> seen;
  for (const planfile::Variable *variable : *plan.variables()) {
    if (!variable->member() || !seen.insert(variable->tensor()).second)
      continue;
    const planfile::Tensor &tensor = *plan.tensors()->Get(variable->tensor());
    std::vector<std::byte> bytes(denseBytes(tensor));
    member.executor.read(variable->tensor(), bytes);
    std::vector<double> values(bytes.size() / support::byteSize(dtypeOf(tensor)));
    support::toDoubles(dtypeOf(tensor), bytes, values);
    count += static_cast<size_t>(std::ranges::count_if(values, [](double x) { return x != 0; }));
  }
  return count;
}

} // namespace

TEST_P(Variables, BeginAsOnOneRankAlone) {
  constexpr uint64_t seed = 11;
  const auto draw = [&](const PlanFile &file, Member &member) {
    setVariables(file, member.executor, member.rank, nullptr, seed);
  };
  const Values alone = valuesOf(keepings().front(), draw);
  EXPECT_EQ(valuesOf(GetParam(), draw), alone);
  // The numbers are those of the generator, and copies are rounded.
  const std::vector<double> &large = alone.at("large"), &copy = alone.at("large.bf16");
  EXPECT_NE(large[5], large[66000]);
  for (const size_t i : {0, 517, 67209})
    EXPECT_EQ(copy[i], support::rounded(support::DType::BF16, large[i]));
  EXPECT_EQ(std::set<double>(alone.at("order").begin(), alone.at("order").end()),
            (std::set<double>{1, 2, 3, 4, 5, 6}));
}

TEST_P(Variables, LeaveTheGapsOfUnitsZero) {
  const PlanFile file = sharedVariables(GetParam()).load();
  if (!GetParam().units)
    return;
  onEachRank(file, [&](Member &member) {
    const planfile::Plan &plan = file.plan();
    std::set<uint32_t> units;
    for (const planfile::Variable *variable : *plan.variables())
      if (variable->member())
        units.insert(variable->tensor());
    for (const uint32_t tensor : units) {
      const std::vector<std::byte> ones(denseBytes(*plan.tensors()->Get(tensor)), std::byte{1});
      member.executor.write(tensor, ones);
    }
    setVariables(file, member.executor, member.rank, nullptr, 3);
    size_t zeros = 0, elements = 0; // of moments, large.m is zero
    for (const planfile::Variable *variable : *plan.variables())
      if (variable->member()) {
        const VariablePart part(plan, *variable, member.rank);
        elements += static_cast<size_t>(part.count);
        if (variable->name()->string_view() == "large.m")
          zeros += static_cast<size_t>(part.count);
      }
    EXPECT_EQ(nonZeros(plan, member), elements - zeros);
  });
}

TEST_P(Variables, ComeFromAFileInAnyFloatingType) {
  for (const support::DType dtype : {support::DType::F32, support::DType::BF16}) {
    std::vector<support::TensorInfo> infos;
    std::vector<std::vector<std::byte>> storage;
    const PlanFile alone = sharedVariables(keepings().front()).load();
    for (const planfile::Variable *variable : *alone.plan().variables()) {
      if (!isSaved(*variable))
        continue;
      infos.push_back({variable->name()->str(), dtype, shapeOf(alone.plan(), *variable)});
      std::vector<double> values(static_cast<size_t>(elementsOf(alone.plan(), *variable)));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>(i % 4001) / 7 - static_cast<double>(infos.size());
      storage.emplace_back(values.size() * support::byteSize(dtype));
      support::fromDoubles(dtype, values, storage.back());
    }
    std::vector<support::TensorView> views;
    for (size_t i = 0; i < infos.size(); ++i)
      views.push_back({infos[i], storage[i]});
    support::writeSafetensors(folder / "given", views);
    const auto read = [&](const PlanFile &file, Member &member) {
      const GivenTensors given(folder / "given");
      setVariables(file, member.executor, member.rank, &given, 0);
    };
    EXPECT_EQ(valuesOf(GetParam(), read), valuesOf(keepings().front(), read));
  }
}

TEST_P(Variables, AreTakenFromDenseValuesOfTheWhole) {
  const auto write = [&](const PlanFile &file, Member &member) {
    const planfile::Plan &plan = file.plan();
    clearGaps(plan, member.executor, member.rank);
    for (const planfile::Variable *variable : *plan.variables()) {
      if (isCopy(*variable))
        continue;
      std::vector<float> values(static_cast<size_t>(elementsOf(plan, *variable)));
      std::iota(values.begin(), values.end(), 0.5f);
      writeVariable(plan, member.executor, *variable, member.rank,
                    std::as_bytes(std::span(values)));
    }
  };
  EXPECT_EQ(valuesOf(GetParam(), write), valuesOf(keepings().front(), write));
}

TEST_P(Variables, AreComparedAmongRanksThatHoldTheSame) {
  const PlanFile file = sharedVariables(GetParam()).load();
  const planfile::Plan &plan = file.plan();
  if (GetParam().ranks() == 1)
    return;
  onEachRank(file, [&](Member &member) {
    setVariables(file, member.executor, member.rank, nullptr, 5);
    member.ranks->agree(hashesOfVariables(file, member.executor, member.rank));
  });
  // The last element of `large`, changed on one rank that holds it.
  const planfile::Variable *large = nullptr;
  for (const planfile::Variable *variable : *plan.variables())
    if (variable->name()->string_view() == "large")
      large = variable;
  std::vector<uint32_t> holders;
  const int64_t last = elementsOf(plan, *large) - 1;
  for (uint32_t rank = 0; rank < GetParam().ranks(); ++rank)
    if (VariablePart(plan, *large, rank).end() > last && VariablePart(plan, *large, rank).count > 0)
      holders.push_back(rank);
  std::vector<std::string> said(GetParam().ranks());
  asRanks(GetParam().ranks(), [&](Channel &channel) {
    Member member(file, &channel);
    setVariables(file, member.executor, member.rank, nullptr, 5);
    if (member.rank == holders.back()) {
      const VariablePart part(plan, *large, member.rank);
      const float value = 7;
      member.executor.writeRange(large->tensor(),
                                 static_cast<uint64_t>(part.place + last - part.first) * 4,
                                 std::as_bytes(std::span(&value, 1)));
    }
    try {
      channel.agree(hashesOfVariables(file, member.executor, member.rank));
    } catch (const support::Error &error) {
      said[member.rank] = error.what();
    }
  });
  for (const std::string &text : said) {
    if (holders.size() == 1) { // nobody else knows
      EXPECT_EQ(text, "");
      continue;
    }
    EXPECT_NE(text.find(!GetParam().cut.empty() ? "pieces of parameters and states over "
                                                : " has parameters and states with hash "),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("rank " + std::to_string(holders.front())), std::string::npos) << text;
    EXPECT_NE(text.find("rank " + std::to_string(holders.back())), std::string::npos) << text;
  }
}

TEST_P(Variables, CountAndAreFiniteAsOnOneRankAlone) {
  const PlanFile file = sharedVariables(GetParam()).load();
  EXPECT_EQ(countParameters(file.plan()).all, 4u + 130 * 517 + 6 + 3);
  onEachRank(file, [&](Member &member) {
    setVariables(file, member.executor, member.rank, nullptr, 5);
    for (const planfile::Variable *variable : *file.plan().variables())
      EXPECT_TRUE(isFinite(file, member.executor, *variable, member.rank));
  });
}

INSTANTIATE_TEST_SUITE_P(Keeping, Variables, testing::ValuesIn(keepings()), nameOfKeeping);

TEST(DerivedVariables, AreMadeOfWhatHasBeenWritten) {
  PlanBuilder builder = smallTraining();
  const uint32_t number = builder.variable("w.made", {4});
  planfile::VariableT &made = *builder.plan.variables[number];
  made.role = planfile::VariableRole::derived;
  made.owner = 0;
  builder.program("derive",
                  blocks(call(planfile::CopyT(),
                              {reads(builder.plan.variables[0]->tensor), writes(made.tensor)})));
  const PlanFile file = builder.load();
  const planfile::Variable &variable = *file.plan().variables()->Get(number);
  EXPECT_TRUE(followsOthers(variable));
  EXPECT_FALSE(isCopy(variable) || isSaved(variable) || isInCheckpoint(variable));
  CpuExecutor executor(file, {.threads = 1});
  setVariables(file, executor, 0, nullptr, 0);
  deriveVariables(file.plan(), executor);
  std::array<float, 4> found{};
  executor.readRange(variable.tensor(), 0, std::as_writable_bytes(std::span(found)));
  EXPECT_EQ(found, (std::array<float, 4>{3, 3, 3, 3}));
}

// More than goes through staging memory at once, on memory that was used before.
TEST(InitialValues, AreTheSameForAnyNumberOfThreads) {
  constexpr int64_t elements = (int64_t{1} << 23) + 100'003;
  static_assert(elements * sizeof(float) > Executor::kStagingBytes);
  PlanBuilder builder = smallTraining();
  const auto variable = [&](const std::string &name, planfile::VariableRole role,
                            int32_t owner) -> planfile::VariableT & {
    planfile::VariableT &made = *builder.plan.variables[builder.variable(name, {elements})];
    made.role = role;
    made.owner = owner;
    return made;
  };
  const auto owner = static_cast<int32_t>(builder.plan.variables.size());
  planfile::InitializerT &init =
      *variable("large", planfile::VariableRole::parameter, -1).initializer;
  init.kind = planfile::InitKind::trunc_normal;
  init.std = 0.02;
  init.cut = 3;
  const uint32_t momentTensor = variable("large.m", planfile::VariableRole::moment, owner).tensor;
  const uint32_t copyTensor = builder.tensor(
      "large.bf16", {elements}, planfile::SegmentKind::persistent, planfile::DType::bf16);
  variable("large.bf16", planfile::VariableRole::copy, owner).tensor = copyTensor;
  const PlanFile file = builder.load();
  const uint32_t tensor = file.plan().variables()->Get(static_cast<uint32_t>(owner))->tensor();

  std::vector<float> expected(elements), found(elements), moments(elements);
  support::fill(support::Initializer::truncNormal(0.02, 3), 5, "large", expected);
  std::vector<std::byte> rounded(2 * elements), copy(2 * elements);
  support::convert(support::DType::F32, std::as_bytes(std::span(expected)), support::DType::BF16,
                   rounded);
  for (const unsigned threads : {1U, 3U}) {
    CpuExecutor executor(file, {.threads = threads});
    executor.writeRange(momentTensor, 0, std::as_bytes(std::span(expected)));
    std::ranges::fill(executor.staging(1000), std::byte{7});
    setVariables(file, executor, 0, nullptr, 5);
    executor.readRange(tensor, 0, std::as_writable_bytes(std::span(found)));
    EXPECT_TRUE(found == expected) << threads;
    executor.readRange(copyTensor, 0, copy);
    EXPECT_TRUE(copy == rounded) << threads;
    executor.readRange(momentTensor, 0, std::as_writable_bytes(std::span(moments)));
    EXPECT_TRUE(std::ranges::all_of(moments, [](float m) { return m == 0.0F; })) << threads;
  }
}

// A parameter that is drawn from normal(0.02), in elements of that type: its number.
int32_t addLarge(PlanBuilder &builder, const std::vector<int64_t> &shape, planfile::DType dtype) {
  const uint32_t index = builder.variable("large", shape);
  planfile::VariableT &weight = *builder.plan.variables[index];
  weight.role = planfile::VariableRole::parameter;
  weight.initializer->kind = planfile::InitKind::normal;
  weight.initializer->std = 0.02;
  weight.tensor = builder.tensor("large.held", shape, planfile::SegmentKind::persistent, dtype);
  return static_cast<int32_t>(index);
}

// Files and initialisers have floats; what is held are integers and what rows of them are
// multiplied by.
TEST(InitialValues, OfInt8AreRoundedRowByRow) {
  constexpr int64_t rows = 300, columns = 48;
  PlanBuilder builder = smallTraining();
  const int32_t owner = addLarge(builder, {rows, columns}, planfile::DType::i8);
  planfile::VariableT &scale = *builder.plan.variables[builder.variable("large.scale", {rows})];
  scale.role = planfile::VariableRole::scale;
  scale.owner = owner;
  const PlanFile file = builder.load();
  const auto &variables = *file.plan().variables();
  const planfile::Variable &integers = *variables.Get(static_cast<uint32_t>(owner));
  const planfile::Variable &scales = *variables.Get(static_cast<uint32_t>(owner) + 1);
  EXPECT_TRUE(isInt8(file.plan(), integers) && isSaved(integers));
  EXPECT_EQ(givenDtypeOf(file.plan(), integers), support::DType::F32);
  EXPECT_TRUE(followsOthers(scales));
  EXPECT_FALSE(isSaved(scales) || isInCheckpoint(scales));

  std::vector<float> drawn(rows * columns), wantedScales(rows), foundScales(rows);
  std::vector<int8_t> wanted(rows * columns), found(rows * columns);
  support::fill(support::Initializer::normal(0.02), 5, "large", drawn);
  for (size_t row = 0; row < rows; ++row)
    wantedScales[row] =
        support::quantizeRow(std::span<const float>(drawn).subspan(row * columns, columns),
                             std::span(wanted).subspan(row * columns, columns));
  for (const unsigned threads : {1U, 3U}) {
    CpuExecutor executor(file, {.threads = threads});
    setVariables(file, executor, 0, nullptr, 5);
    executor.readRange(integers.tensor(), 0, std::as_writable_bytes(std::span(found)));
    executor.readRange(scales.tensor(), 0, std::as_writable_bytes(std::span(foundScales)));
    EXPECT_EQ(found, wanted) << threads;
    EXPECT_EQ(foundScales, wantedScales) << threads;
  }
}

// Of 4 bits each group of a row has a scale, and a byte two numbers: what the plan says of the
// variable and of its tensor differs.
TEST(InitialValues, OfInt4AreRoundedGroupByGroup) {
  constexpr int64_t rows = 300, columns = 96, groups = columns / support::kInt4Group;
  PlanBuilder builder = smallTraining();
  const int32_t owner = addLarge(builder, {rows, columns / 2}, planfile::DType::i8);
  builder.plan.variables[static_cast<size_t>(owner)]->packed = true;
  planfile::VariableT &scale =
      *builder.plan.variables[builder.variable("large.scale", {rows, groups})];
  scale.role = planfile::VariableRole::scale;
  scale.owner = owner;
  scale.tensor = builder.tensor("large.scale", {rows, groups}, planfile::SegmentKind::persistent,
                                planfile::DType::bf16);
  const PlanFile file = builder.load();
  const auto &variables = *file.plan().variables();
  const planfile::Variable &integers = *variables.Get(static_cast<uint32_t>(owner));
  const planfile::Variable &scales = *variables.Get(static_cast<uint32_t>(owner) + 1);
  EXPECT_TRUE(isInt8(file.plan(), integers));
  EXPECT_EQ(shapeOf(file.plan(), integers), (std::vector<int64_t>{rows, columns}));
  EXPECT_EQ(givenDtypeOf(file.plan(), integers), support::DType::F32);
  EXPECT_EQ(heldBytes(file.plan(), integers, 0), static_cast<uint64_t>(rows * columns / 2));

  std::vector<float> drawn(rows * columns);
  std::vector<uint16_t> wantedScales(rows * groups), foundScales(rows * groups);
  std::vector<int8_t> wanted(rows * columns / 2), found(rows * columns / 2);
  support::fill(support::Initializer::normal(0.02), 5, "large", drawn);
  for (size_t group = 0; group < rows * groups; ++group)
    wantedScales[group] = support::quantizeGroup(
        std::span<const float>(drawn).subspan(group * support::kInt4Group, support::kInt4Group),
        std::span(wanted).subspan(group * support::kInt4Bytes, support::kInt4Bytes));
  for (const unsigned threads : {1U, 3U}) {
    CpuExecutor executor(file, {.threads = threads});
    setVariables(file, executor, 0, nullptr, 5);
    executor.readRange(integers.tensor(), 0, std::as_writable_bytes(std::span(found)));
    executor.readRange(scales.tensor(), 0, std::as_writable_bytes(std::span(foundScales)));
    EXPECT_EQ(found, wanted) << threads;
    EXPECT_EQ(foundScales, wantedScales) << threads;
  }
}

// Files have f32, and both halves are made of it; whoever reads it has it again.
TEST(InitialValues, OfTwoHalvesAreJoinedToTheBit) {
  constexpr int64_t rows = 300, columns = 48;
  PlanBuilder builder = smallTraining();
  const int32_t owner = addLarge(builder, {rows, columns}, planfile::DType::bf16);
  planfile::VariableT &left =
      *builder.plan.variables[builder.variable("large.rest", {rows, columns})];
  left.role = planfile::VariableRole::rest;
  left.owner = owner;
  left.tensor = builder.tensor("large.rest", {rows, columns}, planfile::SegmentKind::persistent,
                               planfile::DType::i16);
  const PlanFile file = builder.load();
  const auto &variables = *file.plan().variables();
  const planfile::Variable &halved = *variables.Get(static_cast<uint32_t>(owner));
  const planfile::Variable &rest = *variables.Get(static_cast<uint32_t>(owner) + 1);
  EXPECT_EQ(restOf(file.plan(), halved), &rest);
  EXPECT_EQ(dtypeOf(file.plan(), halved), support::DType::F32);
  EXPECT_TRUE(isInCheckpoint(halved) && followsOthers(rest));
  EXPECT_FALSE(isSaved(rest) || isInCheckpoint(rest));

  std::vector<float> drawn(rows * columns), joined(rows * columns);
  std::vector<uint16_t> highs(rows * columns);
  std::vector<int16_t> rests(rows * columns);
  support::fill(support::Initializer::normal(0.02), 5, "large", drawn);
  CpuExecutor executor(file, {.threads = 3});
  setVariables(file, executor, 0, nullptr, 5);
  executor.readRange(halved.tensor(), 0, std::as_writable_bytes(std::span(highs)));
  executor.readRange(rest.tensor(), 0, std::as_writable_bytes(std::span(rests)));
  for (size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_EQ(highs[i], support::splitFloat(drawn[i]).high);
    EXPECT_EQ(rests[i], support::splitFloat(drawn[i]).rest);
  }
  readVariable(file.plan(), executor, halved, 0,
               [&](int64_t first, std::span<const std::byte> values) {
                 std::memcpy(&joined[static_cast<size_t>(first)], values.data(), values.size());
               });
  EXPECT_EQ(joined, drawn);
  EXPECT_TRUE(clearVariable(file.plan(), executor, halved, 0));
  executor.readRange(rest.tensor(), 0, std::as_writable_bytes(std::span(rests)));
  EXPECT_EQ(rests, std::vector<int16_t>(rows * columns));
}

TEST(Int8Rows, AreAtMostHalfAScaleAway) {
  std::array<int8_t, 4> integers{};
  const std::array<float, 4> row = {127.0F, -127.0F, 2.5F, -0.4F};
  EXPECT_EQ(support::quantizeRow(row, integers), 1.0F);
  EXPECT_EQ(integers, (std::array<int8_t, 4>{127, -127, 2, 0})); // ties to even
  EXPECT_EQ(support::quantizeRow(std::array<float, 4>{}, integers), 0.0F);
  EXPECT_EQ(integers, (std::array<int8_t, 4>{}));
  // No scale that is subnormal, as devices may take that for zero.
  EXPECT_EQ(support::quantizeRow(std::array<float, 4>{1e-38F}, integers), 0.0F);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(support::quantizeRow(std::array<float, 4>{infinity, 1.0F}, integers)));
  EXPECT_TRUE(std::isnan(support::quantizeRow(std::array<float, 4>{1.0F, NAN}, integers)));
}

TEST(TensorRanges, AreOfDenseTensorsAndInsideThem) {
  PlanBuilder builder = smallTraining();
  const uint32_t strided = builder.view("strided", {2}, {2}, planfile::SegmentKind::persistent, 0);
  const PlanFile file = builder.load();
  CpuExecutor executor(file, {.threads = 1});
  const uint32_t w = file.plan().variables()->Get(0)->tensor();
  const std::array<float, 2> values = {8, 9};
  executor.writeRange(w, 4, std::as_bytes(std::span(values)));
  std::array<float, 3> found{};
  executor.readRange(w, 4, std::as_writable_bytes(std::span(found)));
  EXPECT_EQ(found[0], 8);
  EXPECT_EQ(found[1], 9);
  executor.clearRange(w, 8, 4);
  executor.readRange(w, 4, std::as_writable_bytes(std::span(found)));
  EXPECT_EQ(found[0], 8);
  EXPECT_EQ(found[1], 0);
  EXPECT_THROW(executor.clearRange(w, 12, 8), support::Error);
  EXPECT_THROW(executor.clearRange(strided, 0, 4), support::Error);
  const auto errorOf = [&](uint32_t tensor, uint64_t begin) -> std::string {
    try {
      executor.writeRange(tensor, begin, std::as_bytes(std::span(values)));
    } catch (const support::Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(errorOf(w, 8), "");
  EXPECT_EQ(errorOf(w, 12), "w: no bytes [12, 20) in a tensor of 16");
  EXPECT_EQ(errorOf(w, ~uint64_t{0}), "w: no bytes [18446744073709551615, 7) in a tensor of 16");
  EXPECT_EQ(errorOf(strided, 0), "strided: no bytes [0, 8) in a strided tensor of 8");
}
