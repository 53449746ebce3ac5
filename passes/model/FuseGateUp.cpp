// hydra-fuse-gate-up: gate and up projections become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEGATEUP
#include "passes/Passes.h.inc"

namespace {

/// The multiplication that a value is a factor of, itself or through one activation: an elementwise
/// function of it alone; null otherwise.
Operation *gateOf(Value v) {
  if (!v.hasOneUse())
    return nullptr;
  Operation *user = *v.user_begin();
  if (user->hasTrait<Elementwise>() && user->getNumOperands() == 1 &&
      user->getResult(0).hasOneUse())
    user = *user->getResult(0).user_begin();
  return isa<MulOp>(user) ? user : nullptr;
}

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
