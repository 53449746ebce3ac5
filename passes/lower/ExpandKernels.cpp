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
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      const auto *backends = plan::kernelExpansionOf(module);
      if (!backends || failed(backends->expand(module, target)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace hydra
