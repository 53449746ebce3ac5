// What a plan says of its tuning.
#include "runtime/cuda/TunedPlan.h"

#include "runtime/support/Error.h"
#include "test/unit/cuda/driver/OnFakeDriver.h"

#include <gmock/gmock.h>

using namespace hydra;
using namespace hydra::runtime::cuda;
using hydra::test::forGpu;
using hydra::test::loaded;
using hydra::test::PlanBuilder;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr const char *kMachine = "NVIDIA H200, cuBLASLt 130100";

PlanBuilder tunedFor(const std::string &machine) {
  PlanBuilder builder = forGpu();
  noteTunedFor(builder.plan, machine);
  return builder;
}

TEST(TunedPlan, FitsAMachineThatItWasTunedFor) {
  EXPECT_NO_THROW(checkTunedFor(loaded(forGpu()), kMachine));
  EXPECT_NO_THROW(checkTunedFor(loaded(tunedFor(kMachine)), kMachine));
  EXPECT_NO_THROW(
      checkTunedFor(loaded(tunedFor(std::string(kMachine) + ", cuDNN 91900")), kMachine));
}

TEST(TunedPlan, FitsNoOther) {
  try {
    checkTunedFor(loaded(tunedFor("NVIDIA H100, cuBLASLt 130100")), kMachine);
    ADD_FAILURE() << "accepted";
  } catch (const support::Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("tuned for NVIDIA H100, cuBLASLt 130100, but this is "
                                        "NVIDIA H200, cuBLASLt 130100"));
  }
}

TEST(TunedPlan, IsTunedForTheLastMachine) {
  PlanBuilder builder = tunedFor("NVIDIA H100, cuBLASLt 130100");
  noteTunedFor(builder.plan, kMachine);
  EXPECT_NO_THROW(checkTunedFor(loaded(std::move(builder)), kMachine));
}

TEST(TunedPlan, TuningIsAnOptimizationWhereThereAreOthers) {
  planfile::PlanT plain = std::move(tunedFor(kMachine).plan);
  EXPECT_TRUE(plain.optimizations.empty());
  planfile::PlanT guarded;
  guarded.header = std::make_unique<planfile::HeaderT>();
  guarded.optimizations.push_back(std::make_unique<planfile::OptimizationT>());
  noteTunedFor(guarded, kMachine);
  noteTunedFor(guarded, kMachine);
  ASSERT_EQ(guarded.optimizations.size(), 2U);
  EXPECT_EQ(guarded.optimizations[1]->name, "tuned-kernels");
}

TEST(TunedPlan, StepsOfLoopsComeOnceForEveryIteration) {
  planfile::ProgramT program;
  program.blocks =
      test::blocks(test::step("first", {}), test::loop(2, {}, test::blocks(test::step("in", {}))),
                   test::choose(0, {}), test::step("last", {}));
  program.blocks[2]->node.AsSwitch()->cases.push_back(std::make_unique<planfile::CaseT>());
  program.blocks[2]->node.AsSwitch()->cases[0]->blocks = test::blocks(test::step("case", {}));
  std::vector<std::string> names;
  for (const planfile::StepT *step : stepsInOrder(program))
    names.push_back(step ? step->name : "switch");
  EXPECT_THAT(names, ElementsAre("first", "in", "in", "switch", "case", "last"));
}

} // namespace
