// hydra-place-optimizer: updates right behind their gradients.
#include "passes/Passes.h"
#include "passes/place/Updates.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_PLACEOPTIMIZER
#include "passes/Passes.h.inc"

namespace {

struct PlaceOptimizer : impl::PlaceOptimizerBase<PlaceOptimizer> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto &[update, readers] : findUpdates(entry))
        place(update, readers.getArrayRef());
  }

private:
  void place(Operation *update, ArrayRef<Operation *> readers) {
    // Behind what it reads, and behind who still reads the old value.
    Operation *last = nullptr;
    auto after = [&](Operation *op) {
      if (!last || last->isBeforeInBlock(op))
        last = op;
    };
    for (Value operand : update->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && !isa<UseOp>(producer))
        after(producer);
    for (Operation *reader : readers)
      after(reader);
    if (!last || !last->isBeforeInBlock(update) || last->getNextNode() == update)
      return; // a reader behind it: it is written elsewhere and copied, as before
    update->moveAfter(last);
    for (Value operand : update->getOperands()) // reading a variable can be anywhere before
      if (auto use = operand.getDefiningOp<UseOp>(); use && update->isBeforeInBlock(use))
        use->moveBefore(update);
    ++placed;
  }
};

} // namespace
} // namespace hydra
