// hydra-fuse-adapters: the first matrices of adapters beside one input become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEADAPTERS
#include "passes/Passes.h.inc"

namespace {

struct FuseAdapters : impl::FuseAdaptersBase<FuseAdapters> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      SmallVector<SmallVector<LinearOp>> all = siblingProjections(entry);
      for (SmallVector<LinearOp> &siblings : all) {
        if (!isAdapter(siblings.front()))
          continue;
        fuseProjections(getArgument(), siblings);
        fused += siblings.size();
      }
    }
  }
};

} // namespace
} // namespace hydra
