// What the watch over data flow sees of passes that change plans.
#include "test/fuzz/differential/DataFlow.h"

#include "compiler/Pipelines.h"
#include "test/support/Compile.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace hydra::test {

namespace {

/// A loop fills two rows, which are a program's output, and so is their product with a matrix.
constexpr const char *kPlan = R"(
plan.module @m {
  %w = plan.buffer persistent param : memref<8x8xf32>
  plan.variable parameter "w" = %w init <ones> : memref<8x8xf32>
  plan.program @p {
    %x = plan.buffer transient other : memref<8xf32>
    plan.input "x" = %x values 0 : memref<8xf32>
    %other = plan.buffer transient other : memref<8xf32>
    plan.input "other" = %other values 0 : memref<8xf32>
    %a = plan.buffer transient other : memref<2x8xf32>
    %b = plan.buffer transient other : memref<2x8xf32>
    %y = plan.buffer transient other : memref<2x8xf32>
    %row = plan.view %a plus 0 : memref<2x8xf32> to memref<8xf32>
    plan.loop 2 (%row by 32 : memref<8xf32>) {
      plan.copy(%x : memref<8xf32>) -> (%row : memref<8xf32>)
    }
    plan.fill 1.0 -> (%b : memref<2x8xf32>)
    plan.matmul(%a : memref<2x8xf32>, %w : memref<8x8xf32>) -> (%y : memref<2x8xf32>)
    plan.output "rows" = %a : memref<2x8xf32>
    plan.output "y" = %y : memref<2x8xf32>
  }
}
)";

struct Change : PassWrapper<Change, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Change)

  explicit Change(std::function<void(plan::ProgramOp)> how) : how(std::move(how)) {}
  StringRef getArgument() const override { return "change"; }
  void runOnOperation() override { getOperation().walk(how); }

  std::function<void(plan::ProgramOp)> how;
};

/// What is seen when a program is changed so, behind a pass that changes nothing.
std::string seen(std::function<void(plan::ProgramOp)> how) {
  Compiler compiler;
  DialectRegistry registry;
  registerDialects(registry);
  compiler.context.appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> module = compiler.parse(kPlan);
  std::string finding;
  EXPECT_TRUE(module && compiler.run(*module, [&](PassManager &passes) {
    passes.addInstrumentation(createDataFlowCheck(finding));
    passes.addPass(std::make_unique<Change>([](plan::ProgramOp) {}));
    passes.addPass(std::make_unique<Change>(how));
  })) << compiler.takeDiagnostics();
  return finding;
}

template <typename Op> Op only(plan::ProgramOp program) {
  return *program.getBody().getOps<Op>().begin();
}

} // namespace

TEST(DataFlow, KnowsAnotherOperand) {
  EXPECT_EQ(seen([](plan::ProgramOp program) {
              auto matmul = only<plan::MatmulOp>(program);
              matmul.getAMutable().set(only<plan::FillOp>(program).getTo());
            }),
            "element 0 of memref<2x8xf32> of line 12 depends no more on memref<8xf32> of line 6 "
            "behind change, in p");
}

TEST(DataFlow, KnowsWhatEachElementIsMadeOf) {
  EXPECT_EQ(seen([](plan::ProgramOp program) { only<plan::LoopOp>(program).setCount(1); }),
            "element 8 of memref<2x8xf32> of line 10 depends no more on memref<8xf32> of line 6 "
            "behind change, in p");
}

TEST(DataFlow, KnowsWhatIsNotWritten) {
  EXPECT_EQ(seen([](plan::ProgramOp program) { only<plan::MatmulOp>(program).erase(); }),
            "memref<2x8xf32> of line 12 is not written any more behind change, in p");
}

TEST(DataFlow, AllowsOtherWays) {
  EXPECT_EQ(seen([](plan::ProgramOp program) { // one copy of all rows, through other bytes
              auto matmul = only<plan::MatmulOp>(program);
              auto fill = only<plan::FillOp>(program);
              OpBuilder b(matmul);
              plan::CopyOp::create(b, matmul.getLoc(), matmul.getA(), fill.getTo());
              matmul.getAMutable().set(fill.getTo());
              fill.erase();
            }),
            "");
}

} // namespace hydra::test
