// Random programs as compiled plans: values and gradients against the oracle, and the same bits
// whatever the exact passes, the level and the number of threads.
#include "test/support/RandomProgram.h"
#include "test/unit/compiled/CompiledModel.h"

#include <gtest/gtest.h>

namespace hydra::test {

namespace {

constexpr uint64_t kShards = 8, kProgramsPerShard = 5;

/// Every way of compiling that design and Passes.td call exact, beside the default.
struct Variant {
  const char *name;
  unsigned level;
  std::vector<std::string> disabled;
};

const std::vector<Variant> &variants() {
  static const std::vector<Variant> all = {
      {"-O0", 0, {}},
      {"-O1", 1, {}},
      {"no fusions", 2, {"hydra-form-fusions"}},
      {"nothing made again", 2, {"hydra-recompute", "hydra-reuse-norm-stats"}},
      {"no layouts, no schedule", 2, {"hydra-assign-layouts", "hydra-schedule"}},
      {"no memory reuse, no simplification", 2, {"hydra-plan-memory", "canonicalize", "cse"}},
  };
  return all;
}

/// Passes of -O2 that change numerics: compared with the oracle, but not bit by bit.
const std::vector<std::string> kNumericsChanging = {"hydra-raise-attention",
                                                    "hydra-raise-linear-ce", "hydra-fuse-qkv",
                                                    "hydra-fuse-gate-up", "hydra-fuse-siblings",
                                                    "hydra-hold-rounded",
                                                    "hydra-join-weight-gradients"};

class RandomPlans : public testing::TestWithParam<uint64_t> {};

} // namespace

TEST_P(RandomPlans, MatchTheOracleInEveryVariant) {
  for (uint64_t i = 0; i < kProgramsPerShard && !HasFailure(); ++i) {
    const uint64_t seed = GetParam() * kProgramsPerShard + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    const BoundText source = randomProgram(seed).layered;
    CompiledModel model(source.text, source.binding, Mode::Grad);
    model.drawValues(seed);
    const std::vector<std::byte> plan = model.plan();
    EXPECT_EQ(plan, model.plan(2, {}, /*parallel=*/true)) << "compiled with several threads";
    const TensorMap results = runPlan(plan, model.values(), 1);
    expectWithinRounding(results, model.evaluate(false), model.evaluate(true));
    expectSameBits(runPlan(plan, model.values(), 2), results);
    const TensorMap exact = runPlan(model.plan(2, kNumericsChanging), model.values(), 1);
    for (const Variant &variant : variants()) {
      SCOPED_TRACE(variant.name);
      std::vector<std::string> disabled = kNumericsChanging;
      disabled.insert(disabled.end(), variant.disabled.begin(), variant.disabled.end());
      expectSameBits(runPlan(model.plan(variant.level, disabled), model.values(), 2), exact);
    }
  }
}

// In fewer bits the same passes are exact, and the oracle rounds where the program does. One
// rounding may fall to the other side, which is one unit of the format.
TEST_P(RandomPlans, MatchTheOracleInFewerBits) {
  for (const char *precision : {"tf32", "bf16", "f16", "pure_bf16"}) {
    SCOPED_TRACE(precision);
    const BoundText source = randomProgram(GetParam()).layered;
    CompiledModel model(source.text, source.binding, Mode::Grad, precision);
    model.drawValues(GetParam());
    const std::vector<std::byte> plan = model.plan();
    const TensorMap results = runPlan(plan, model.values(), 1);
    expectWithinRounding(results, model.evaluate(false), model.evaluate(true), 0x1p-12);
    expectSameBits(runPlan(plan, model.values(), 2), results);
    const TensorMap exact = runPlan(model.plan(2, kNumericsChanging), model.values(), 1);
    for (const Variant &variant : variants()) {
      SCOPED_TRACE(variant.name);
      std::vector<std::string> disabled = kNumericsChanging;
      disabled.insert(disabled.end(), variant.disabled.begin(), variant.disabled.end());
      expectSameBits(runPlan(model.plan(variant.level, disabled), model.values(), 2), exact);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, testing::Range<uint64_t>(0, kShards));

} // namespace hydra::test
