// The rules for what is in the host's memory: moments, which nothing but transfers touch.
#include "test/unit/plan/DamageCase.h"

namespace hydra::test {

using namespace planfile;

namespace {

/// A parameter, its moment on the host, and a place on the device for that to visit.
struct HostMemory : testing::Test {
  HostMemory() {
    const uint32_t w = builder.variable("w", {4});
    const uint32_t m = builder.variable("w.m", {4}, 0, static_cast<int32_t>(w));
    weight = builder.plan.variables[w]->tensor;
    moment = builder.plan.variables[m]->tensor = builder.tensor("w.m", {4}, SegmentKind::host);
    slot = builder.tensor("slot", {4});
    kernel = builder.kernel("adamw", 2);
  }

  static std::unique_ptr<BlockT> transfer(uint32_t from, uint32_t to) {
    return call(TransferT(), {reads(from), writes(to)});
  }
  std::unique_ptr<BlockT> update(uint32_t tensor) {
    return launch("adamw", kernel, 4, 4, {updates(weight), updates(tensor)});
  }

  std::string errorWith(Blocks body) {
    builder.program("train", std::move(body));
    std::string error = errorOf(builder);
    builder.plan.programs.clear();
    return error;
  }

  PlanBuilder builder;
  uint32_t weight, moment, slot, kernel;
};

} // namespace

TEST_F(HostMemory, MomentsVisitTheDevice) {
  EXPECT_EQ(errorWith(blocks(transfer(moment, slot), update(slot), transfer(slot, moment))), "");
}

TEST_F(HostMemory, KernelsDoNotReachIt) {
  EXPECT_EQ(errorWith(blocks(update(moment))),
            "plan.fb: programs[0].blocks[0].step.args[1]: w.m is in the host's memory, which only "
            "transfers touch");
  EXPECT_EQ(errorWith(blocks(call(CopyT(), {reads(slot), writes(moment)}))),
            "plan.fb: programs[0].blocks[0].step.args[1]: w.m is in the host's memory, which only "
            "transfers touch");
  builder.output(builder.program("train", {}), "m", moment);
  EXPECT_EQ(errorOf(builder),
            "plan.fb: programs[0].outputs[0].tensor: w.m is in the host's memory, "
            "which only transfers touch");
}

TEST_F(HostMemory, TransfersCrossOver) {
  EXPECT_EQ(
      errorWith(blocks(transfer(slot, weight))),
      "plan.fb: programs[0].blocks[0].step.args: has 2 tensors, 0 of them in the host's memory; "
      "expected 2 and 1");
  const uint32_t other = builder.tensor("other", {4}, SegmentKind::host);
  EXPECT_EQ(
      errorWith(blocks(transfer(moment, other))),
      "plan.fb: programs[0].blocks[0].step.args: has 2 tensors, 2 of them in the host's memory; "
      "expected 2 and 1");
  EXPECT_EQ(
      errorWith(blocks(call(TransferT(), {reads(moment)}))),
      "plan.fb: programs[0].blocks[0].step.args: has 1 tensors, 1 of them in the host's memory; "
      "expected 2 and 1");
}

TEST_F(HostMemory, StreamsOrderIt) {
  Blocks body = blocks(transfer(moment, slot), update(slot), transfer(slot, moment));
  body[2]->stream = 1;
  builder.program("train", std::move(body)).streams = 2;
  EXPECT_NE(errorOf(builder).find("slot"), std::string::npos) << errorOf(builder);
}

TEST_F(HostMemory, OnlyMomentsAreThere) {
  builder.plan.variables[0]->tensor = builder.tensor("w", {4}, SegmentKind::host);
  EXPECT_EQ(errorOf(builder),
            "plan.fb: variables[0].tensor: w is in the host segment; expected the persistent one");
}

TEST_F(HostMemory, VariablesShareNoByte) {
  const uint32_t v = builder.variable("w.v", {4}, 0, 0);
  builder.plan.variables[v]->tensor = moment;
  EXPECT_EQ(errorOf(builder), "plan.fb: variables[2]: w.v shares bytes with w.m");
}

} // namespace hydra::test
