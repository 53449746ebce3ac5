// Every differentiable operation in all its forms as a compiled plan: values and gradients against
// the oracle.
#include "test/support/OpCases.h"
#include "test/unit/compiled/CompiledModel.h"

#include <gtest/gtest.h>

namespace hydra::test {

namespace {

constexpr uint64_t kModelsPerCase = 4;

class OpPlans : public testing::TestWithParam<OpCase> {};

std::string nameOf(const testing::TestParamInfo<OpCase> &info) { return info.param.name; }

} // namespace

TEST_P(OpPlans, MatchTheOracle) {
  for (uint64_t seed = 0; seed < kModelsPerCase && !HasFailure(); ++seed) {
    Random random(seed);
    const SmallModel small = GetParam().make(random);
    SCOPED_TRACE(small.text());
    CompiledModel model(small.text(), {}, Mode::Grad);
    model.setValues(small.values(seed));
    expectWithinRounding(runPlan(model.plan(), model.values(), 2), model.evaluate(false),
                         model.evaluate(true));
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpPlans, testing::ValuesIn(opCases()), nameOf);

} // namespace hydra::test
