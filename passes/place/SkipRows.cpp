// hydra-skip-rows: work on gathered rows ends where they end.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/place/ActiveRows.h"
#include "passes/place/Layouts.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SKIPROWS
#include "passes/Passes.h.inc"

namespace {

bool isView(Operation *op) { return op->hasAttr(kViewAttr); }

RowUse useOf(OpOperand &use) {
  auto op = dyn_cast<RowUseOpInterface>(use.getOwner());
  return op ? op.rowUse(use.getOperandNumber()) : RowUse::All;
}

/// A pair of parts that a matmul over joined rows multiplies, by its number.
using JoinedPart = std::pair<Operation *, unsigned>;

/// The concatenation of rows that an operand of a matmul is; null where it is none.
ConcatOp joinedRows(Value operand) {
  auto concat = operand.getDefiningOp<ConcatOp>();
  return concat && concat->hasAttr(kPartsInPlaceAttr) && concat.getAxis() == 0 ? concat
                                                                               : ConcatOp();
}

/// Whether a matmul sums over rows of two concatenations, pair by pair of parts.
bool sumsOverParts(MatmulOp matmul) {
  if (matmul.getAddend() || useOf(matmul->getOpOperand(0)) != RowUse::Sum)
    return false;
  ConcatOp a = joinedRows(matmul.getA()), b = joinedRows(matmul.getB());
  return a && b && a.getParts().size() == b.getParts().size() &&
         llvm::all_of(llvm::zip(a.getParts(), b.getParts()), [](auto parts) {
           const auto [x, y] = parts;
           return build::shapeOf(x)[0] == build::shapeOf(y)[0];
         });
}

/// What depends on the rows that one `hydra.compact` gathers.
class GatheredRows {
public:
  explicit GatheredRows(CompactOp compact) : compact(compact) {
    rows = build::shapeOf(compact.getMask())[0];
    for (Operation *op = compact->getNextNode(); op; op = op->getNextNode())
      visit(op);
    while (llvm::any_of(members, [&](Operation *op) { return !mayStop(op); }))
      members.remove_if([&](Operation *op) { return !mayStop(op); });
  }

  /// Operations that need not see rows behind the last active one, in program order.
  ArrayRef<Operation *> getMembers() const { return members.getArrayRef(); }
  /// Parts of sums over joined rows that need not see them either.
  ArrayRef<JoinedPart> getParts() const { return joined.getArrayRef(); }

private:
  bool hasRows(Value v) const {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    return type && type.getRank() > 0 && type.getShape()[0] == rows;
  }

  void visit(Operation *op) {
    if (auto matmul = dyn_cast<MatmulOp>(op); matmul && sumsOverParts(matmul))
      return visitParts(matmul);
    auto rowUse = dyn_cast<RowUseOpInterface>(op);
    if (!rowUse || op->hasAttr(kActiveRowsAttr)) // of another compaction, whose rows it works on
      return;
    bool each = gathers(op), sums = false, emptySum = false;
    for (OpOperand &use : op->getOpOperands()) {
      RowUse kind = rowUse.rowUse(use.getOperandNumber());
      each |= kind == RowUse::Each && partial.contains(use.get());
      sums |= kind == RowUse::Sum && partial.contains(use.get());
      emptySum |= kind == RowUse::Sum && empty.contains(use.get());
      // Rows of what is also needed whole are not left out.
      if (kind == RowUse::All && llvm::count(op->getOperands(), use.get()) > 1)
        return;
    }
    if (sums ? !emptySum
             : !each || !llvm::all_of(op->getResults(), [&](Value v) { return hasRows(v); }))
      return;
    if (!isView(op))
      members.insert(op);
    if (sums)
      return;
    partial.insert(op->result_begin(), op->result_end());
    findEmpty(op);
  }

  void visitParts(MatmulOp matmul) {
    auto known = matmul->getAttrOfType<DenseI64ArrayAttr>(kActivePartsAttr);
    const auto pairs =
        llvm::zip(joinedRows(matmul.getA()).getParts(), joinedRows(matmul.getB()).getParts());
    for (auto [i, pair] : llvm::enumerate(pairs)) {
      const auto [a, b] = pair;
      const bool isAnothers = known && known[i] >= 0; // of another compaction, like its rows
      if (!isAnothers && hasRows(a) && (partial.contains(a) || partial.contains(b)) &&
          (empty.contains(a) || empty.contains(b)))
        joined.insert({matmul, i});
    }
  }

  /// Whether a group takes rows in the order of the compaction.
  bool gathers(Operation *op) {
    auto group = dyn_cast<FusedOp>(op);
    if (!group)
      return false;
    return llvm::any_of(group.getInputs(), [&](Value v) { return v == compact.getIndex(); }) &&
           group.getRows().size() == 1 && group.getRows()[0] == rows &&
           llvm::any_of(group.getBlock().getOps<TakeRowsOp>(), [&](TakeRowsOp take) {
             return isFrom(take.getIndex(), compact.getIndex());
           });
  }

  /// Whether a value in a group is this value outside.
  static bool isFrom(Value inner, Value outer) {
    auto argument = dyn_cast<BlockArgument>(inner);
    return argument &&
           cast<FusedOp>(argument.getOwner()->getParentOp()).getInputs()[argument.getArgNumber()] ==
               outer;
  }

  /// Results that are zero without active rows: what sums over rows may leave out.
  void findEmpty(Operation *op) {
    if (auto group = dyn_cast<FusedOp>(op)) {
      for (auto [inner, result] : llvm::zip(group.getYield().getOperands(), group->getResults()))
        if (isEmpty(inner))
          empty.insert(result);
    } else if (auto zero = dyn_cast<ZeroOpInterface>(op); zero && zero.givesZero([&](unsigned i) {
                 return empty.contains(op->getOperand(i));
               })) {
      empty.insert(op->getResult(0));
    }
  }
  bool isEmpty(Value inner) {
    if (auto argument = dyn_cast<BlockArgument>(inner)) {
      auto group = cast<FusedOp>(argument.getOwner()->getParentOp());
      return empty.contains(group.getInputs()[argument.getArgNumber()]);
    }
    Operation *op = inner.getDefiningOp();
    if (auto take = dyn_cast<TakeRowsOp>(op))
      return isFrom(take.getIndex(), compact.getIndex());
    auto zero = dyn_cast<ZeroOpInterface>(op);
    return zero && zero.givesZero([&](unsigned i) { return isEmpty(op->getOperand(i)); });
  }

  /// Whether nothing reads rows of its results behind the last active one.
  bool mayStop(Operation *op) {
    return llvm::all_of(op->getResults(), [&](Value v) {
      bool sums = llvm::any_of(op->getOpOperands(),
                               [](OpOperand &use) { return useOf(use) == RowUse::Sum; });
      return sums || mayStop(v);
    });
  }
  bool mayStop(Value v) {
    return llvm::all_of(v.getUses(), [&](OpOperand &use) {
      switch (useOf(use)) {
      case RowUse::All:
        return isPart(use);
      case RowUse::Each:
        return isView(use.getOwner()) ? mayStop(use.getOwner()->getResult(0))
                                      : members.contains(use.getOwner());
      case RowUse::Sum:
        return members.contains(use.getOwner());
      case RowUse::Named:
        return readsBack(use);
      }
      llvm_unreachable("four uses");
    });
  }
  /// Whether it is a part of joined rows that are only summed over, up to the last active one.
  bool isPart(OpOperand &use) {
    auto concat = dyn_cast<ConcatOp>(use.getOwner());
    return concat && llvm::all_of(concat->getUsers(), [&](Operation *user) {
             return joined.contains({user, use.getOperandNumber()});
           });
  }
  /// Whether a group takes rows by their places, so only active ones.
  bool readsBack(OpOperand &use) {
    auto group = cast<FusedOp>(use.getOwner());
    return llvm::all_of(group.getBlock().getArgument(use.getOperandNumber()).getUsers(),
                        [&](Operation *user) {
                          return isFrom(cast<TakeRowsOp>(user).getIndex(), compact.getPlace());
                        });
  }

  CompactOp compact;
  int64_t rows;
  llvm::SetVector<Operation *> members;
  llvm::SetVector<JoinedPart> joined;
  DenseSet<Value> partial, empty;
};

struct SkipRows : impl::SkipRowsBase<SkipRows> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    int64_t number = 0;
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      SmallVector<CompactOp> found(entry.getBody().front().getOps<CompactOp>());
      for (CompactOp compact : found) {
        GatheredRows gathered(compact);
        if (gathered.getMembers().empty())
          continue;
        compact->setAttr(kCompactAttr, Builder(&getContext()).getI64IntegerAttr(number));
        markParts(gathered.getParts(), number);
        markRuns(gathered.getMembers(), number++);
      }
    }
  }

private:
  void markParts(ArrayRef<JoinedPart> parts, int64_t compact) {
    for (auto [matmul, part] : parts) {
      auto known = matmul->getAttrOfType<DenseI64ArrayAttr>(kActivePartsAttr);
      SmallVector<int64_t> each(known ? known.asArrayRef() : ArrayRef<int64_t>());
      each.resize(joinedRows(cast<MatmulOp>(matmul).getA()).getParts().size(), -1);
      each[part] = compact;
      matmul->setAttr(kActivePartsAttr, DenseI64ArrayAttr::get(&getContext(), each));
      skipping += !known;
    }
  }

  /// Runs of members that can stand side by side, each with a member that pays for a decision on the
  /// device.
  void markRuns(ArrayRef<Operation *> members, int64_t compact) {
    SmallVector<SmallVector<Operation *>> runs;
    for (Operation *op : members) {
      if (runs.empty() || !moveBehind(op, runs.back().back()))
        runs.emplace_back();
      runs.back().push_back(op);
    }
    for (ArrayRef<Operation *> run : runs) {
      if (llvm::none_of(
              run, [](Operation *op) { return cast<RowUseOpInterface>(op).paysToSkipRows(); }))
        continue;
      for (Operation *op : run)
        op->setAttr(kActiveRowsAttr,
                    Builder(&getContext()).getDenseI64ArrayAttr({compact, nextRun}));
      ++nextRun;
      skipping += run.size();
    }
  }

  /// Moves an operation, and the views it reads, behind another one unless what it reads comes
  /// later.
  static bool moveBehind(Operation *op, Operation *last) {
    llvm::SetVector<Operation *> moving;
    if (!collect(op, last, moving))
      return false;
    for (Operation *one : moving) {
      one->moveAfter(last);
      last = one;
    }
    return true;
  }
  static bool collect(Operation *op, Operation *last, llvm::SetVector<Operation *> &moving) {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || producer == last || producer->isBeforeInBlock(last))
        continue;
      if (!isView(producer) && !isa<UseOp>(producer))
        return false;
      if (!collect(producer, last, moving))
        return false;
    }
    moving.insert(op);
    return true;
  }

  int64_t nextRun = 0;
};

} // namespace
} // namespace hydra
