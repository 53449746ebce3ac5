// hydra-lower-losses: losses, norms and reductions that are not row-wise become operations that
// are.
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_LOWERLOSSES
#include "passes/Passes.h.inc"

namespace {

struct LowerLosses : impl::LowerLossesBase<LowerLosses> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    SmallVector<RowWiseFormOpInterface> found;
    model.walk([&](RowWiseFormOpInterface op) {
      if (op.needsRowWiseForm())
        found.push_back(op);
    });
    for (RowWiseFormOpInterface op : found) {
      OpBuilder b(op);
      op->setLoc(madeBy(getArgument(), op->getLoc()));
      op->replaceAllUsesWith(op.buildRowWiseForm(b));
      op->erase();
      ++lowered;
    }
  }
};

} // namespace
} // namespace hydra
