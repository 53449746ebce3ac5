// Scans with random bodies as compiled plans: values and gradients against the oracle, and the same bits
// whatever the exact passes.
#include "test/support/RandomScan.h"
#include "test/unit/compiled/CompiledModel.h"

#include <gtest/gtest.h>

namespace hydra::test {

TEST(ScanPlans, MatchTheOracle) {
  constexpr uint64_t kScans = 24;
  for (uint64_t seed = 0; seed < kScans && !testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    const RandomScan scan(random);
    const SmallModel small = scan.model(scan.scan() + "    %y = hydra.mul %all, %end\n");
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + small.text());
    CompiledModel model(small.text(), {}, Mode::Grad);
    model.setValues(small.values(seed));
    const TensorMap results = runPlan(model.plan(), model.values(), 2);
    expectWithinRounding(results, model.evaluate(false), model.evaluate(true));
    for (const char *pass : {"hydra-form-fusions", "hydra-assign-layouts", "hydra-schedule",
                             "hydra-plan-memory", "cse"})
      expectSameBits(runPlan(model.plan(2, {pass}), model.values(), 1), results);
  }
}

} // namespace hydra::test
