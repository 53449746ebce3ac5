// hydra-expand-kernels: steps become launches of kernels that the target's backend has for them.
#include "dialects/hydra/Target.h"
#include "dialects/plan/KernelExpansion.h"
#include "dialects/plan/Plan.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_EXPANDKERNELS
#include "passes/Passes.h.inc"

namespace {

struct ExpandKernels : impl::ExpandKernelsBase<ExpandKernels> {
  void runOnOperation() override {
    const TargetAttr target = targetOf(getOperation());
    auto *backends = getContext()
                         .getLoadedDialect<plan::PlanDialect>()
                         ->getRegisteredInterface<plan::KernelExpansionInterface>();
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      if (!backends) {
        module.emitError("has no backend that could expand kernels");
        return signalPassFailure();
      }
      if (failed(backends->expand(module, target)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace hydra
