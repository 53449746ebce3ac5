// hydra-schedule: an order of operations with a low peak of live bytes.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/place/Layouts.h"
#include "passes/place/Updates.h"

#include <set>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SCHEDULE
#include "passes/Passes.h.inc"

namespace {

/// Live bytes while the operations of a program run in some order. Inputs, outputs and variables
/// are not counted: they are alive whatever the order.
class Liveness {
public:
  explicit Liveness(EntryOp entry) : updated(updatedValues(entry)) {
    for (Operation &op : entry.getBody().front())
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
  /// Bytes of a dense value; views, uses of variables and their new values own none, and of a
  /// concatenation whose parts are in place these have been counted.
  int64_t ownedBytes(Value v) const {
    Operation *op = v.getDefiningOp();
    if (!op || isa<UseOp>(op) || op->hasAttr(kViewAttr) || op->hasAttr(kAdjacentAttr) ||
        op->hasAttr(kPartsInPlaceAttr) || updated.contains(v))
      return 0;
    return bytesOf(v.getType());
  }

  static SmallVector<Value> roots(Operation *op) {
    SmallVector<Value> found;
    for (Value operand : op->getOperands())
      if (Value root = layoutOf(operand).root; !llvm::is_contained(found, root))
        found.push_back(root);
    return found;
  }

  DenseSet<Value> updated;
  DenseMap<Value, DenseSet<Operation *>> readers;
  int64_t live = 0, peak = 0;
};

struct Schedule : impl::ScheduleBase<Schedule> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      schedule(entry);
  }

private:
  void schedule(EntryOp entry) {
    Block &body = entry.getBody().front();
    std::vector<Operation *> given;
    for (Operation &op : body)
      given.push_back(&op);
    std::vector<Operation *> eager = eagerOrder(entry, given);
    int64_t before = peakOf(entry, given), after = peakOf(entry, eager);
    if (after >= before)
      return;
    for (Operation *op : eager)
      op->moveBefore(&body, body.end());
    ++reordered;
  }

  static int64_t peakOf(EntryOp entry, ArrayRef<Operation *> order) {
    Liveness liveness(entry);
    for (Operation *op : order)
      liveness.run(op);
    return liveness.peakBytes();
  }

  /// The given order, except that an operation runs as soon as it can when that frees memory:
  /// weight gradients and updates go where their operands die.
  static std::vector<Operation *> eagerOrder(EntryOp entry, ArrayRef<Operation *> given) {
    Liveness liveness(entry);
    auto updates = findUpdates(entry);
    DenseMap<Operation *, SmallVector<Operation *>> waiting; // updates, by what reads the old value
    DenseMap<Operation *, unsigned> number, missing;
    for (auto [i, op] : llvm::enumerate(given)) {
      number[op] = i;
      DenseSet<Operation *> producers;
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          producers.insert(producer);
      if (auto it = updates.find(op); it != updates.end())
        for (Operation *reader : it->second)
          if (reader->isBeforeInBlock(op) && !producers.contains(reader)) {
            waiting[reader].push_back(op);
            ++missing[op];
          }
      missing[op] += producers.size();
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
      for (Operation *update : waiting.lookup(op))
        if (--missing[update] == 0)
          ready.insert(number[update]);
    }
    return order;
  }
};

} // namespace
} // namespace hydra
