// hydra-schedule: an order of operations with a low peak of live bytes.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/place/Layouts.h"

#include <set>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SCHEDULE
#include "passes/Passes.h.inc"

namespace {

/// Bytes of a dense value; views and uses of variables own none.
int64_t ownedBytes(Value v) {
  Operation *op = v.getDefiningOp();
  if (!op || isa<UseOp>(op) || op->hasAttr(kViewAttr))
    return 0;
  RankedTensorType type = build::typeOf(v);
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

/// Live bytes while the operations of a program run in some order. Inputs, outputs and variables are
/// not counted: they are alive whatever the order.
class Liveness {
public:
  explicit Liveness(Block &body) {
    for (Operation &op : body)
      for (Value operand : op.getOperands())
        readers[layoutOf(operand).root].insert(&op);
  }

  /// Bytes that running `op` next adds, after its dying operands are gone.
  int64_t growth(Operation *op) const {
    int64_t bytes = 0;
    for (Value result : op->getResults())
      bytes += ownedBytes(result);
    for (Value root : roots(op)) {
      auto it = readers.find(root);
      if (it->second.size() == 1)
        bytes -= ownedBytes(root);
    }
    return bytes;
  }

  /// Runs `op`: counts its results and drops the operands it is the last to read.
  void run(Operation *op) {
    for (Value result : op->getResults()) {
      live += ownedBytes(result);
      if (!op->hasAttr(kViewAttr) && !readers.count(result))
        live -= ownedBytes(result);
    }
    peak = std::max(peak, live);
    for (Value root : roots(op)) {
      auto it = readers.find(root);
      it->second.erase(op);
      if (it->second.empty())
        live -= ownedBytes(root);
    }
  }

  int64_t peakBytes() const { return peak; }

private:
  static SmallVector<Value> roots(Operation *op) {
    SmallVector<Value> found;
    for (Value operand : op->getOperands())
      if (Value root = layoutOf(operand).root; !llvm::is_contained(found, root))
        found.push_back(root);
    return found;
  }

  DenseMap<Value, DenseSet<Operation *>> readers;
  int64_t live = 0, peak = 0;
};

struct Schedule : impl::ScheduleBase<Schedule> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      schedule(entry.getBody().front());
  }

private:
  void schedule(Block &body) {
    std::vector<Operation *> given;
    for (Operation &op : body)
      given.push_back(&op);
    std::vector<Operation *> eager = eagerOrder(body, given);
    int64_t before = peakOf(body, given), after = peakOf(body, eager);
    if (after >= before)
      return;
    for (Operation *op : eager)
      op->moveBefore(&body, body.end());
    ++reordered;
  }

  static int64_t peakOf(Block &body, ArrayRef<Operation *> order) {
    Liveness liveness(body);
    for (Operation *op : order)
      liveness.run(op);
    return liveness.peakBytes();
  }

  /// The given order, except that an operation runs as soon as it can when that frees memory: weight
  /// gradients and updates go where their operands die.
  static std::vector<Operation *> eagerOrder(Block &body, ArrayRef<Operation *> given) {
    Liveness liveness(body);
    DenseMap<Operation *, unsigned> number, missing;
    for (auto [i, op] : llvm::enumerate(given)) {
      number[op] = i;
      DenseSet<Operation *> producers;
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          producers.insert(producer);
      missing[op] = producers.size();
    }
    std::set<unsigned> ready;
    for (auto [i, op] : llvm::enumerate(given))
      if (missing[op] == 0)
        ready.insert(i);
    std::vector<Operation *> order;
    while (!ready.empty()) {
      unsigned next = *ready.begin();
      // Only a few candidates: what is ready grows with the uses of variables.
      int64_t best = 0;
      unsigned looked = 0;
      for (unsigned candidate : ready) {
        Operation *op = given[candidate];
        if (op->hasTrait<OpTrait::IsTerminator>() || isa<UseOp>(op))
          continue;
        if (int64_t growth = liveness.growth(op); growth < best) {
          best = growth;
          next = candidate;
        }
        if (++looked == 64)
          break;
      }
      ready.erase(next);
      Operation *op = given[next];
      liveness.run(op);
      order.push_back(op);
      DenseSet<Operation *> users;
      for (Operation *user : op->getUsers())
        users.insert(user);
      for (Operation *user : users)
        if (--missing[user] == 0)
          ready.insert(number[user]);
    }
    return order;
  }
};

} // namespace
} // namespace hydra
