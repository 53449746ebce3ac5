// hydra-recompute: values that are cheap to recompute are not kept for the backward pass.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
#include "passes/Passes.h"
#include "passes/bind/ValueTags.h"
#include "passes/place/Layouts.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_RECOMPUTE
#include "passes/Passes.h.inc"

namespace {

/// Operations between two uses of a value from which on it is said to wait.
constexpr int64_t kWait = 24;
/// Operations behind one another that are recomputed for one value: a gated activation with its
/// casts.
constexpr int kDepth = 4;

/// Marks copies as made here, for the phase of what needs them.
struct Repeats : OpBuilder::Listener {
  explicit Repeats(Operation *reader) : scope(scopeOf(reader->getLoc())) {}
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    op->setLoc(madeBy("hydra-recompute", op->getLoc()));
    if (scope)
      op->setLoc(withPhase(op->getLoc(), scope.getPhase()));
  }

  ScopeAttr scope;
};

struct Recompute : impl::RecomputeBase<Recompute> {
  using RecomputeBase::RecomputeBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      SmallVector<BoundaryOp> marks(entry.getBody().front().getOps<BoundaryOp>());
      if (entry.isProgram() && (every > 0 || layers > 0) && !marks.empty())
        replayLayers(marks);
      for (BoundaryOp mark : marks)
        mark.erase();
      if (!entry.isProgram())
        continue; // what an iteration of a loop computes does not wait long
      position.clear();
      SmallVector<Operation *> ops;
      for (auto [i, op] : llvm::enumerate(entry.getBody().front())) {
        position[&op] = i;
        ops.push_back(&op);
      }
      for (Operation *op : ops)
        if (isCheap(op))
          recompute(op);
      for (Operation *view : dead) // users before what they use
        view->erase();
      dead.clear();
      erased.clear();
    }
  }

private:
  /// Whether layer `i`, of so many that can be replayed, is one of `layers` that are spread evenly
  /// over them.
  bool isSpread(size_t i, size_t candidates) const {
    const size_t wanted = static_cast<size_t>(layers.getValue());
    return wanted >= candidates || i * wanted % candidates < wanted;
  }

  /// Replays layers between their marks; the last mark is where the forward pass ends. What
  /// the forward pass uses behind a layer is kept: above all what the next one begins with.
  void replayLayers(ArrayRef<BoundaryOp> marks) {
    BoundaryOp end = marks.back();
    for (size_t i = 0; i + 2 < marks.size(); ++i) {
      BoundaryOp mark = marks[i], next = marks[i + 1];
      if (every > 0 ? *mark.getLayer() % every != 0 : !isSpread(i, marks.size() - 2))
        continue;
      SmallVector<Operation *> layer;
      auto isUsedAhead = [&](Operation *user) {
        return next->isBeforeInBlock(user) && user->isBeforeInBlock(end);
      };
      for (Operation *op = mark->getNextNode(); op != next; op = op->getNextNode())
        if (!isa<UseOp, ConstantOp>(op) && llvm::none_of(op->getUsers(), isUsedAhead))
          layer.push_back(op);
      replay(layer, end);
    }
  }

  /// Copies what is used behind `end` of a layer, and what that needs, to the first such use.
  void replay(ArrayRef<Operation *> layer, Operation *end) {
    DenseSet<Operation *> needed;
    auto isLate = [&](Operation *user) { return end->isBeforeInBlock(user); };
    Operation *at = nullptr;
    for (Operation *op : llvm::reverse(layer))
      for (Operation *user : op->getUsers()) {
        bool late = isLate(user);
        if (late && (!at || user->isBeforeInBlock(at)))
          at = user;
        if (late || needed.contains(user))
          needed.insert(op);
      }
    if (!at)
      return;
    // Late uses are collected before there are copies, which are late as well.
    SmallVector<OpOperand *> uses;
    for (Operation *op : layer)
      for (OpOperand &use : op->getUses())
        if (isLate(use.getOwner()))
          uses.push_back(&use);
    Repeats repeats(at);
    OpBuilder b(at, &repeats);
    IRMapping made;
    for (Operation *op : layer)
      if (needed.contains(op)) {
        b.clone(*op, made);
        tagCheckpoints(op, needed);
      }
    for (OpOperand *use : uses)
      use->set(made.lookup(use->get()));
    recomputed += needed.size();
  }

  /// What is computed again begins with values that are kept for it.
  static void tagCheckpoints(Operation *op, const DenseSet<Operation *> &again) {
    for (Value operand : op->getOperands())
      if (Operation *kept = operand.getDefiningOp();
          kept && !again.contains(kept) && !isa<UseOp, ConstantOp>(kept))
        tagMade(operand, Category::act_ckpt);
  }

  bool isCheap(Operation *op) const {
    auto cheap = dyn_cast<RecomputeOpInterface>(op);
    if (!cheap)
      return false;
    const RecomputeWhen when = cheap.recomputeWhen();
    switch (when) {
    case RecomputeWhen::Never:
      return false;
    case RecomputeWhen::Always:
      return light || rowwise;
    case RecomputeWhen::Rowwise:
      return rowwise;
    case RecomputeWhen::Copies:
      return copies;
    }
    llvm_unreachable("four answers");
  }

  /// A use of a value, itself or through views of it.
  struct Use {
    OpOperand *operand;
    SmallVector<Operation *, 2> views; ///< from the value to what is used
  };

  static bool isView(Operation *op) {
    auto storage = dyn_cast<StorageOpInterface>(op);
    return storage && storage.viewedOperand() == 0u;
  }

  static void collectUses(Value value, ArrayRef<Operation *> views, SmallVectorImpl<Use> &uses) {
    for (OpOperand &operand : value.getUses()) {
      SmallVector<Operation *, 2> chain(views);
      if (!isView(operand.getOwner())) {
        uses.push_back({&operand, chain});
        continue;
      }
      chain.push_back(operand.getOwner());
      collectUses(operand.getOwner()->getResult(0), chain, uses);
    }
  }

  /// Recomputes the value for its uses behind the longest wait.
  void recompute(Operation *op) {
    SmallVector<Use> uses;
    collectUses(op->getResult(0), {}, uses);
    auto at = [&](const Use &use) { return position[use.operand->getOwner()]; };
    llvm::stable_sort(uses, [&](const Use &a, const Use &b) { return at(a) < at(b); });
    int64_t longest = 0;
    size_t late = 0; // the first use behind the wait
    for (size_t i = 1; i < uses.size(); ++i)
      if (int64_t wait = at(uses[i]) - at(uses[i - 1]); wait > longest) {
        longest = wait;
        late = i;
      }
    if (longest < kWait)
      return;
    Operation *next = uses[late].operand->getOwner();
    if (!operandsLive(op, next, kDepth) || (inPlace && takesPlaceOfOperand(op, next)))
      return;
    Repeats repeats(next);
    OpBuilder b(next, &repeats);
    IRMapping made;
    made.map(op->getResult(0), cloneBefore(b, op, next, made));
    for (const Use &use : llvm::drop_begin(uses, late)) {
      for (Operation *view : use.views)
        if (!made.contains(view->getResult(0)))
          b.clone(*view, made);
      use.operand->set(made.lookup(use.operand->get()));
    }
    for (const Use &use : llvm::drop_begin(uses, late))
      for (Operation *view : llvm::reverse(use.views))
        if (view->use_empty() && erased.insert(view).second)
          dead.push_back(view);
    ++recomputed;
  }

  /// Parameters lie side by side where they are joined (`hydra-assign-layouts`).
  static bool isJoinedParameters(Operation *op) {
    return isa<ConcatOp>(op) && llvm::all_of(op->getOperands(), [](Value part) {
             return part.getDefiningOp<UseOp>() != nullptr;
           });
  }

  /// Whether a value is there at `at` even if nothing is recomputed from it.
  bool isLive(Value value, Operation *at) const {
    Operation *op = value.getDefiningOp();
    if (!op || isa<UseOp, ConstantOp>(op) || isJoinedParameters(op))
      return true;
    if (auto storage = dyn_cast<StorageOpInterface>(op); storage && storage.viewedOperand())
      return isLive(op->getOperand(*storage.viewedOperand()), at);
    return lastUse(value) >= position.lookup(at);
  }

  /// Position of the last operation that reads the value, through views.
  int64_t lastUse(Value value) const {
    int64_t last = -1;
    for (Operation *user : value.getUsers()) {
      auto storage = dyn_cast<StorageOpInterface>(user);
      last = std::max(last, storage && storage.viewedOperand() ? lastUse(user->getResult(0))
                                                               : position.lookup(user));
    }
    return last;
  }

  /// Whether nothing but the operation reads the elements of an operand that are there at `at` even
  /// so, being a part of something, and its result can take their place: keeping it costs nothing.
  bool takesPlaceOfOperand(Operation *op, Operation *at) const {
    auto storage = dyn_cast<StorageOpInterface>(op);
    return storage && llvm::any_of(storage.overwritableOperands(0), [&](unsigned number) {
             const Value operand = op->getOperand(number);
             SmallVector<Use> uses;
             collectUses(possiblyViewed(operand).back(), {}, uses);
             return operand.getType() == op->getResult(0).getType() && isLive(operand, at) &&
                    llvm::all_of(uses,
                                 [&](const Use &use) {
                                   return use.operand->getOwner() == op ||
                                          areApart(use.operand->get(), operand);
                                 }) &&
                    canTakePlace(op->getResult(0), possibleStridesOf(operand));
           });
  }

  /// Whether a value can be written with such strides, and all that read it take it so. What is
  /// returned, and what loops cut into chunks, has a place of its own.
  static bool canTakePlace(Value value, const FailureOr<SmallVector<int64_t>> &strides) {
    SmallVector<Use> uses;
    collectUses(value, {}, uses);
    return succeeded(strides) && !isRepeated(build::shapeOf(value), *strides) &&
           llvm::all_of(
               uses,
               [](const Use &use) { return isa<StorageOpInterface>(use.operand->getOwner()); }) &&
           readersAccept(value, *strides, Views::Possible);
  }

  bool operandsLive(Operation *op, Operation *at, int depth) const {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return isLive(operand, at) || (depth > 1 && isCheap(operand.getDefiningOp()) &&
                                     operandsLive(operand.getDefiningOp(), at, depth - 1));
    });
  }

  /// A copy of the operation, and of those of its operands that are not there any more.
  Value cloneBefore(OpBuilder &b, Operation *op, Operation *at, IRMapping &made) {
    for (Value operand : op->getOperands())
      if (!made.contains(operand) && !isLive(operand, at))
        made.map(operand, cloneBefore(b, operand.getDefiningOp(), at, made));
    return b.clone(*op, made)->getResult(0);
  }

  SmallVector<Operation *> dead; ///< views that nothing reads any more
  DenseSet<Operation *> erased;
  DenseMap<Operation *, int64_t> position; // in the program as it was; clones have none
};

} // namespace
} // namespace hydra
