// A train plan whose variables lie in units, or by themselves: the same variables either way.
#pragma once

#include "runtime/cpu/CpuExecutor.h"
#include "runtime/plan/Mesh.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/run/Variables.h"
#include "runtime/support/DType.h"
#include "runtime/support/Error.h"
#include "test/support/TemporaryFolder.h"
#include "test/unit/cpu/SmallTraining.h"
#include "test/unit/ranks/TestRanks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hydra::test {

/// How variables are kept.
struct Keeping {
  std::string name;
  std::vector<std::pair<std::string, uint32_t>> mesh; ///< outermost first
  bool units = false;
  std::vector<uint32_t> cut; ///< axes, along which units of parameters and moments are cut
  bool wholeCopy = false;    ///< of the bf16 copies, although parameters are cut

  uint32_t ranks() const {
    uint32_t count = 1;
    for (const auto &axis : mesh)
      count *= axis.second;
    return count;
  }
  friend void PrintTo(const Keeping &one, std::ostream *out) { *out << one.name; }
};

/// One rank alone first.
inline std::vector<Keeping> keepings() {
  return {{"Alone", {}, false, {}, false},
          {"AloneInUnits", {}, true, {}, false},
          {"Replicated", {{"data", 2}}, false, {}, false},
          {"WholeUnits", {{"data", 2}}, true, {}, false},
          {"Fsdp", {{"data", 2}}, true, {0}, false},
          {"FsdpOnFour", {{"data", 4}}, true, {0}, false},
          {"FsdpOnSeven", {{"data", 7}}, true, {0}, false},
          {"Zero1", {{"data", 2}}, true, {0}, true},
          {"Hybrid", {{"replica", 2}, {"data", 2}}, true, {1}, false},
          {"TwoLevels", {{"node", 2}, {"data", 3}}, true, {1, 0}, false},
          {"OuterFirst", {{"node", 3}, {"data", 2}}, true, {0, 1}, false},
          {"OuterAndInner", {{"node", 2}, {"replica", 2}, {"data", 2}}, true, {2, 0}, true},
          {"HybridOuter", {{"shard", 2}, {"replica", 2}}, true, {0}, true}};
}

/// smallTraining with more parameters, large [130, 517] (more than four blocks of a hash, which
/// pieces do not end at), order [6] (shuffled), tiny [3], their moments large.m and tiny.m, and
/// copies of large and tiny in bf16.
inline PlanBuilder sharedVariables(const Keeping &how) {
  using namespace planfile;
  PlanBuilder builder = smallTraining();
  for (const auto &[name, size] : how.mesh)
    builder.axis(name, size);
  using Axes = std::vector<uint32_t>;
  const auto piecesOf = [&](const Axes &axes) {
    int64_t pieces = 1;
    for (const uint32_t axis : axes)
      pieces *= how.mesh[axis].second;
    return pieces;
  };
  // A unit of so many rows, rounded up for its pieces, and a few more.
  const auto unit = [&](std::string name, int64_t rows, const Axes &axes, DType dtype) {
    const int64_t pieces = piecesOf(axes);
    return builder.tensor(std::move(name), {(rows + pieces - 1) / pieces, 64},
                          SegmentKind::persistent, dtype);
  };
  const Axes copyCut = how.wholeCopy ? Axes() : how.cut;
  const uint32_t parameters = how.units ? unit("parameters", 1054, how.cut, DType::f32) : 0;
  const uint32_t moments = how.units ? unit("moments", 1052, how.cut, DType::f32) : 0;
  const uint32_t copies = how.units ? unit("copies", 1053, copyCut, DType::bf16) : 0;
  const auto add = [&](const std::string &name, std::vector<int64_t> shape, uint32_t in,
                       uint64_t offset, const Axes &axes, VariableRole role, int32_t owner = -1) {
    const uint32_t index =
        how.units ? builder.member(name, in, shape, offset, axes) : builder.variable(name, shape);
    VariableT &variable = *builder.plan.variables[index];
    variable.role = role;
    variable.owner = owner;
    if (role == VariableRole::copy && !how.units)
      variable.tensor = builder.tensor(name, shape, SegmentKind::persistent, DType::bf16);
    return static_cast<int32_t>(index);
  };
  const auto init = [&](int32_t variable) -> InitializerT & {
    return *builder.plan.variables[static_cast<size_t>(variable)]->initializer;
  };
  int32_t tiny = -1;
  const auto addTiny = [&] {
    tiny = add("tiny", {3}, parameters, 1, how.cut, VariableRole::parameter);
    init(tiny).kind = InitKind::uniform;
    init(tiny).limit = 2;
  };
  if (how.units) // in another order
    addTiny();
  const int32_t large = add("large", {130, 517}, parameters, 64, how.cut, VariableRole::parameter);
  init(large).kind = InitKind::trunc_normal;
  init(large).std = 0.02;
  init(large).cut = 3;
  const int32_t order = add("order", {6}, parameters, 67328, how.cut, VariableRole::parameter);
  init(order).kind = InitKind::shuffle;
  init(order).table = {1, 2, 3, 4, 5, 6};
  if (!how.units)
    addTiny();
  add("large.m", {130, 517}, moments, 0, how.cut, VariableRole::moment, large);
  add("tiny.m", {3}, moments, 67232, how.cut, VariableRole::moment, tiny);
  init(static_cast<int32_t>(builder.plan.variables.size()) - 1).value = 0.5;
  add("large.bf16", {130, 517}, copies, 128, copyCut, VariableRole::copy, large);
  add("tiny.bf16", {3}, copies, 3, copyCut, VariableRole::copy, tiny);
  return builder;
}

/// A rank of a plan that exchanges nothing.
class SilentRank final : public runtime::Communicator {
public:
  SilentRank(uint32_t rank, uint32_t size) : number(rank), count(size) {}
  uint32_t rank() const override { return number; }
  uint32_t size() const override { return count; }
  void allGather(const runtime::Exchange &) override { refuse(); }
  void allToAll(const runtime::Exchange &) override { refuse(); }

private:
  [[noreturn]] static void refuse() { support::fail("nothing to exchange"); }

  uint32_t number, count;
};

/// What one rank runs the plan with; `ranks` is null where it is alone.
struct Member {
  Member(const runtime::PlanFile &file, runtime::Ranks *ranks)
      : ranks(ranks), rank(ranks ? ranks->rank() : 0), silent(rank, ranks ? ranks->size() : 1),
        executor(file, {.threads = 1, .ranks = ranks ? &silent : nullptr}) {}

  runtime::Ranks *ranks;
  uint32_t rank;
  SilentRank silent;
  runtime::CpuExecutor executor;
};

/// Runs the work on each rank of the plan, and expects no error but those named, rank by rank.
inline void onEachRank(const runtime::PlanFile &file, const std::function<void(Member &)> &work,
                       const std::vector<std::string> &errors = {}) {
  const auto ranks = static_cast<uint32_t>(runtime::ranksOf(file.plan()));
  if (ranks == 1) {
    Member alone(file, nullptr);
    return work(alone);
  }
  const std::vector<RankOutcome> outcomes = asRanks(ranks, [&](runtime::Channel &channel) {
    Member member(file, &channel);
    work(member);
  });
  for (size_t rank = 0; rank < outcomes.size(); ++rank)
    EXPECT_EQ(outcomes[rank].error, errors.empty() ? "" : errors[rank]) << "rank " << rank;
}

/// All elements of all variables, by name.
using Values = std::map<std::string, std::vector<double>>;

/// Elements of a rank, into their places of the whole; where another rank had them, they are the
/// same.
inline void take(const planfile::Plan &plan, Member &member, Values &whole) {
  for (const planfile::Variable *variable : *plan.variables()) {
    std::vector<double> &all = whole[variable->name()->str()];
    const support::DType dtype = runtime::dtypeOf(plan, *variable);
    constexpr double unknown = 1e300;
    all.resize(static_cast<size_t>(runtime::elementsOf(plan, *variable)), unknown);
    runtime::readVariable(plan, member.executor, *variable, member.rank,
                          [&](int64_t first, std::span<const std::byte> bytes) {
                            std::vector<double> own(bytes.size() / support::byteSize(dtype));
                            support::toDoubles(dtype, bytes, own);
                            for (size_t i = 0; i < own.size(); ++i) {
                              double &there = all[static_cast<size_t>(first) + i];
                              EXPECT_TRUE(there == unknown || there == own[i])
                                  << variable->name()->str() << " " << first + int64_t(i);
                              there = own[i];
                            }
                          });
  }
}

/// The variables of all ranks after each has set them.
inline Values valuesOf(const Keeping &how,
                       const std::function<void(const runtime::PlanFile &, Member &)> &set) {
  const runtime::PlanFile file = sharedVariables(how).load();
  std::mutex mutex;
  Values whole;
  onEachRank(file, [&](Member &member) {
    set(file, member);
    const std::lock_guard lock(mutex);
    take(file.plan(), member, whole);
  });
  return whole;
}

/// A test of all ways to keep them, with a folder of its own.
class SharedVariables : public testing::TestWithParam<Keeping> {
protected:
  const TemporaryFolder temporary;
  const std::filesystem::path &folder = temporary.path;
};

inline std::string nameOfKeeping(const testing::TestParamInfo<Keeping> &info) {
  return info.param.name;
}

} // namespace hydra::test
