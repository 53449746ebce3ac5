// hydra-fuse-gate-up: gate and up projections become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEGATEUP
#include "passes/Passes.h.inc"

namespace {

/// Both, if they are the factors of one multiplication.
LayerGroups layersOfGate(ArrayRef<LinearOp> siblings) {
  if (siblings.size() != 2)
    return {};
  LinearOp first = siblings[0], second = siblings[1];
  Operation *gate = gateOf(first.getY());
  if (!gate || gateOf(second.getY()) != gate)
    return {};
  return {SmallVector<LinearOp>(siblings)};
}

struct FuseGateUp : impl::FuseGateUpBase<FuseGateUp> {
  void runOnOperation() override {
    if (failed(fuseProjections(getOperation(), getArgument(), fused, layersOfGate)))
      signalPassFailure();
  }
};

} // namespace
} // namespace hydra
