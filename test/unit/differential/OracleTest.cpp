// What the oracle gives to the operations that a plan is made of, so that their spread is known.
#include "test/fuzz/differential/Oracle.h"
#include "test/fuzz/differential/Candidate.h"

#include <gtest/gtest.h>

using namespace hydra;
using namespace hydra::test;

namespace {

Case smallModel() {
  Case source;
  source.source.text = R"(
    hydra.model @m version 1 {
      hydra.group @default sgd(momentum = 0.9, nesterov = false, wd = 0.0)
      hydra.param @e [5, 8] init = normal(1.0)
      hydra.param @w [8, 8] init = normal(1.0)
      hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {
        %x = hydra.let linear(embedding(%tokens, @e), @w)
        %loss = hydra.let linear_cross_entropy(%x, @e, %labels)
        hydra.return loss = %loss
      }
    })";
  source.source.binding.batch = 4;
  source.source.binding.seq = 3;
  source.name = "m";
  return source;
}

} // namespace

TEST(OracleWork, IsAllThatGroupedProgramsAsk) {
  const Case source = smallModel();
  for (const char *text : {"--mode=train --precision=fp8 --fp8-amax=delayed --accum=2",
                           "--mode=train --precision=fp8 --fp8-amax=delayed --mesh=data:2",
                           "--mode=train --average=swa,from=2 --batch-filter",
                           "--mode=train --precision=bf16 --accum=2"}) {
    const Setting setting = Setting::parse(text);
    Compiler compiler;
    const Oracle oracle(compiler, source, setting);
    ASSERT_EQ(oracle.refusal(), "") << text;
    const mlir::OwningOpRef<mlir::ModuleOp> grouped = groupedModule(compiler, source, setting);
    ASSERT_TRUE(grouped) << text;
    EXPECT_TRUE(interpretWork(*grouped, oracle.work(), {}).has_value())
        << text << ": " << compiler.takeDiagnostics();
  }
}
