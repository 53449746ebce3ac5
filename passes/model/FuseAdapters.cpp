// hydra-fuse-adapters: the first matrices of adapters beside one input become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEADAPTERS
#include "passes/Passes.h.inc"

namespace {

/// All, if `hydra-lora` has made them. Those of experts (`hydra.grouped_linear`) are not among the
/// siblings: [E, R, K] of two would have to lie beside each other expert by expert, which is a copy
/// of both in every step, where the matrices of linear layers lie behind one another as they are.
LayerGroups layersOfAdapters(ArrayRef<LinearOp> siblings) {
  if (!isAdapter(siblings.front()))
    return {};
  return {SmallVector<LinearOp>(siblings)};
}

struct FuseAdapters : impl::FuseAdaptersBase<FuseAdapters> {
  void runOnOperation() override {
    if (failed(fuseProjections(getOperation(), getArgument(), fused, layersOfAdapters)))
      signalPassFailure();
  }
};

} // namespace
} // namespace hydra
