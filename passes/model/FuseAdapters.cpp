// hydra-fuse-adapters: the first matrices of adapters beside one input become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEADAPTERS
#include "passes/Passes.h.inc"

namespace {

/// All, if `hydra-lora` has made them.
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
