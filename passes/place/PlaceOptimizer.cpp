// hydra-place-optimizer: updates right behind their gradients.
#include "dialects/hydra/Build.h"
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
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      Updates updates = findUpdates(entry);
      llvm::SmallPtrSet<Operation *, 32> seen;
      for (auto &[update, readers] : updates) {
        if (seen.contains(update))
          continue;
        SmallVector<Operation *> group = groupOf(update, updates);
        seen.insert(group.begin(), group.end());
        place(withMoves(group), updates);
      }
    }
  }

private:
  using Updates = llvm::MapVector<Operation *, llvm::SetVector<Operation *>>;

  /// An update, with the operation of an optimizer that it guards the results of, and what else
  /// does: one that reads the old value, and of which nothing but updates reads the results.
  static SmallVector<Operation *> groupOf(Operation *update, const Updates &updates) {
    for (Value operand : update->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (!maker || updates.contains(maker) || !updates.find(update)->second.contains(maker) ||
          !llvm::all_of(maker->getUsers(), [&](Operation *user) { return updates.contains(user); }))
        continue;
      llvm::SetVector<Operation *> users(maker->user_begin(), maker->user_end());
      SmallVector<Operation *> group = users.takeVector();
      group.push_back(maker);
      llvm::sort(group, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      return group;
    }
    return {update};
  }

  /// Whether an operation takes elements of its operand, computes nothing, and can stand anywhere
  /// behind it.
  static bool onlyMoves(Operation *op) {
    auto storage = dyn_cast<StorageOpInterface>(op);
    return storage && storage.viewedOperand() && op->getNumOperands() == 1;
  }

  /// The same with what only moves elements from one of them to another.
  static SmallVector<Operation *> withMoves(ArrayRef<Operation *> group) {
    llvm::SetVector<Operation *> all(group.begin(), group.end());
    for (Operation *op : group)
      for (Value operand : op->getOperands()) {
        SmallVector<Operation *> moves;
        Operation *producer = operand.getDefiningOp();
        for (; producer && onlyMoves(producer); producer = producer->getOperand(0).getDefiningOp())
          moves.push_back(producer);
        if (llvm::is_contained(group, producer))
          all.insert(moves.begin(), moves.end());
      }
    SmallVector<Operation *> ordered = all.takeVector();
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return ordered;
  }

  /// Whether an operation makes one number of variables and arguments: the share of an average.
  static bool countsAlone(Operation *op, const Updates &updates) {
    return isMemoryEffectFree(op) && !updates.contains(op) &&
           llvm::all_of(op->getResults(),
                        [](Value v) { return build::typeOf(v).getNumElements() == 1; }) &&
           llvm::all_of(op->getOperands(),
                        [](Value v) { return isa<BlockArgument>(v) || v.getDefiningOp<UseOp>(); });
  }

  void place(ArrayRef<Operation *> group, const Updates &updates) {
    // Behind what it reads, and behind what still reads the old value.
    Operation *last = nullptr;
    auto after = [&](Operation *op) {
      if (!llvm::is_contained(group, op) && (!last || last->isBeforeInBlock(op)))
        last = op;
    };
    llvm::SetVector<Operation *> moved; // that only say where operands lie; from the source on
    for (Operation *op : group) {
      for (Value operand : op->getOperands()) {
        SmallVector<Operation *> moves;
        Operation *producer = operand.getDefiningOp();
        for (; producer && onlyMoves(producer) && !llvm::is_contained(group, producer);
             producer = producer->getOperand(0).getDefiningOp())
          moves.push_back(producer);
        if (llvm::is_contained(group, producer))
          continue;
        if (producer && isa<UseOp>(producer)) { // reading a variable can be anywhere before
          moves.push_back(producer);
        } else if (producer && countsAlone(producer, updates)) { // and so can what counts
          moves.push_back(producer);
          for (Value variable : producer->getOperands())
            if (Operation *use = variable.getDefiningOp())
              moves.push_back(use);
        } else if (producer) {
          after(producer);
        }
        moved.insert(moves.rbegin(), moves.rend());
      }
      if (auto it = updates.find(op); it != updates.end())
        for (Operation *reader : it->second)
          after(reader);
    }
    Operation *first = group.front();
    if (!last || !last->isBeforeInBlock(first) || last->getNextNode() == first)
      return; // a reader behind it: it is written elsewhere and copied, as before
    for (Operation *op : llvm::reverse(group))
      op->moveAfter(last);
    for (Operation *op : moved)
      if (first->isBeforeInBlock(op))
        op->moveBefore(first);
    ++placed;
  }
};

} // namespace
} // namespace hydra
