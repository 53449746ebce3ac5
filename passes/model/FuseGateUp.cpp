// hydra-fuse-gate-up: gate and up projections become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEGATEUP
#include "passes/Passes.h.inc"

namespace {

struct FuseGateUp : impl::FuseGateUpBase<FuseGateUp> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      SmallVector<SmallVector<LinearOp>> all = siblingProjections(entry);
      for (SmallVector<LinearOp> &siblings : all) {
        if (siblings.size() != 2)
          continue;
        Operation *gate = gateOf(siblings[0].getY());
        if (!gate || gateOf(siblings[1].getY()) != gate)
          continue;
        fuseProjections(getArgument(), siblings);
        fused += siblings.size();
      }
    }
  }
};

} // namespace
} // namespace hydra
