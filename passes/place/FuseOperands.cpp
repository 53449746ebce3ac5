// hydra-fuse-operands: matmuls of few rows compute the rows that they read.
#include "dialects/hydra/Target.h"
#include "dialects/plan/KernelExpansion.h"
#include "dialects/plan/Plan.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEOPERANDS
#include "passes/Passes.h.inc"

namespace {

/// The matmul that is the next block of the list; null where another is.
plan::MatmulOp matmulBehind(plan::LaunchOp launch) {
  Operation *next = launch->getNextNode();
  while (next && isa<plan::BufferOp, plan::ViewOp>(next))
    next = next->getNextNode();
  return dyn_cast_or_null<plan::MatmulOp>(next);
}

struct FuseOperands : impl::FuseOperandsBase<FuseOperands> {
  void runOnOperation() override {
    const TargetAttr target = targetOf(getOperation());
    auto *backends = getContext()
                         .getLoadedDialect<plan::PlanDialect>()
                         ->getRegisteredInterface<plan::KernelExpansionInterface>();
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      if (!backends) {
        module.emitError("has no backend that could be asked");
        return signalPassFailure();
      }
      for (auto program : module.getBody().getOps<plan::ProgramOp>())
        for (auto launch : program.getBody().getOps<plan::LaunchOp>())
          if (plan::MatmulOp matmul = matmulBehind(launch);
              matmul && backends->canComputeOperand(launch, matmul, target)) {
            launch->setAttr(plan::kComputedAttr, UnitAttr::get(&getContext()));
            ++fused;
          }
    }
  }
};

} // namespace
} // namespace hydra
