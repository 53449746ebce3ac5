// What reads what was gathered, and what gathers it again for some of that.
#include "passes/partition/GatherReaders.h"

using namespace mlir;

namespace hydra {

static void find(Value v, ArrayRef<Operation *> views, SmallVector<GatherReader> &readers) {
  for (OpOperand &use : v.getUses()) {
    auto storage = dyn_cast<StorageOpInterface>(use.getOwner());
    if (!storage || storage.viewedOperand() != use.getOperandNumber() ||
        storage->getNumOperands() != 1) {
      readers.push_back({&use, SmallVector<Operation *>(views)});
      continue;
    }
    SmallVector<Operation *> more(views);
    more.push_back(storage);
    find(storage->getResult(0), more, readers);
  }
}

SmallVector<GatherReader> readersOf(AllGatherOp gather) {
  SmallVector<GatherReader> readers;
  find(gather.getY(), {}, readers);
  llvm::stable_sort(readers, [](const GatherReader &a, const GatherReader &b) {
    return a.operand->getOwner()->isBeforeInBlock(b.operand->getOwner());
  });
  return readers;
}

GatherAgain::GatherAgain(AllGatherOp gather, Operation *before, int64_t number) {
  OpBuilder b(before);
  copy = cast<AllGatherOp>(b.clone(*gather));
  copy.setNumberAttr(b.getI64IntegerAttr(number));
  copies[gather] = copy;
}

void GatherAgain::readBy(const GatherReader &reader) {
  Operation *from = copy;
  for (Operation *view : reader.views) {
    Operation *&own = copies[view];
    if (!own) {
      OpBuilder b(from->getContext());
      b.setInsertionPointAfter(from);
      own = b.clone(*view);
      own->setOperand(0, from->getResult(0));
    }
    from = own;
  }
  reader.operand->set(from->getResult(0));
}

int64_t freeGatherNumber(ModelOp model) {
  int64_t number = 0;
  model.walk([&](CollectiveOpInterface op) {
    if (auto known = op->getAttrOfType<IntegerAttr>("number"))
      number = std::max(number, known.getInt() + 1);
  });
  return number;
}

} // namespace hydra
