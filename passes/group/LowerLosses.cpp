// hydra-lower-losses: losses, norms and reductions that are not row-wise become operations that
// are.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/group/RowLoss.h"

#include "llvm/ADT/TypeSwitch.h"

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
    SmallVector<Operation *> found;
    model.walk([&](Operation *op) {
      auto rowWise = dyn_cast<RowWiseOpInterface>(op);
      if (isa<CrossEntropyOp, CrossEntropyGradOp, GlobalNormOp, TopKOp>(op) ||
          (rowWise && !rowWise.isRowWise()))
        found.push_back(op);
    });
    for (Operation *op : found) {
      OpBuilder b(op);
      SmallVector<Value> results =
          llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
              .Case<CrossEntropyOp, CrossEntropyGradOp, GlobalNormOp, TopKOp>(
                  [&](auto loss) { return lower(b, loss); })
              .Case<SumOp, MeanOp, ReduceMaxOp>(
                  [&](auto reduction) { return lowerReduction(b, reduction); });
      op->replaceAllUsesWith(results);
      op->erase();
      ++lowered;
    }
  }

private:
  /// Brings reduced dimensions together, at the end unless they are at the start and can be summed.
  template <typename Op> static SmallVector<Value> lowerReduction(OpBuilder &b, Op op) {
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = build::shapeOf(op.getX());
    int64_t rank = shape.size(), reduced = 1;
    SmallVector<bool> isReduced(rank, false);
    for (int64_t axis : op.getAxes())
      isReduced[axis < 0 ? axis + rank : axis] = true;
    SmallVector<int64_t> order, kept, last;
    for (int64_t i = 0; i < rank; ++i) {
      (isReduced[i] ? last : order).push_back(i);
      if (isReduced[i])
        reduced *= shape[i];
      else
        kept.push_back(shape[i]);
    }
    bool atStart = !isa<ReduceMaxOp>(op) && last.back() + 1 == static_cast<int64_t>(last.size());
    Value x = op.getX(), y;
    if (atStart) {
      x = build::reshape(b, loc, x, {reduced, RefTensor::elements(kept)});
      y = Op::create(b, loc, x, b.getI64ArrayAttr({0}), UnitAttr());
    } else {
      int64_t axis = kept.size();
      llvm::append_range(order, last);
      if (!llvm::is_sorted(order))
        x = TransposeOp::create(b, loc, x, b.getI64ArrayAttr(order));
      kept.push_back(reduced);
      x = build::reshape(b, loc, x, kept);
      y = Op::create(b, loc, x, b.getI64ArrayAttr({axis}), UnitAttr());
    }
    return {build::reshape(b, loc, y, build::shapeOf(op.getY()))};
  }

  static RowLoss rowLoss(OpBuilder &b, Location loc, Value logits, Value labels) {
    Value z = build::cast(b, loc, build::flattenRows(b, loc, logits), b.getF32Type());
    return {b, loc, z, build::reshape(b, loc, labels, {build::shapeOf(z)[0]})};
  }

  static SmallVector<Value> lower(OpBuilder &b, CrossEntropyOp op) {
    Location loc = op.getLoc();
    RowLoss rows = rowLoss(b, loc, op.getLogits(), op.getLabels());
    Value lse = rows.logSumExp();
    Value share = RowLoss::shareOfRow(b, loc, rows.labels, op.getCount());
    SmallVector<Value> results{
        MulOp::create(b, loc, build::sum(b, loc, rows.losses(lse), {0}), share)};
    if (op.getSaving())
      results.push_back(build::reshape(b, loc, lse, build::shapeOf(op.getLse())));
    return results;
  }

  static SmallVector<Value> lower(OpBuilder &b, CrossEntropyGradOp op) {
    Location loc = op.getLoc();
    RowLoss rows = rowLoss(b, loc, op.getLogits(), op.getLabels());
    Value lse = build::reshape(b, loc, op.getLse(), build::shapeOf(rows.labels));
    Value share = RowLoss::shareOfRow(b, loc, rows.labels, op.getCount());
    Value weight = build::cast(b, loc, op.getDloss(), b.getF32Type()); // the loss is f32
    Value gradient = rows.gradient(lse, MulOp::create(b, loc, weight, share));
    RankedTensorType type = build::typeOf(op.getDlogits());
    gradient = build::cast(b, loc, gradient, type.getElementType());
    return {build::reshape(b, loc, gradient, type.getShape())};
  }

  /// An element is chosen when less than k of its row come before it: are larger, or the same at a
  /// lower index.
  static SmallVector<Value> lower(OpBuilder &b, TopKOp op) {
    Location loc = op.getLoc();
    Value u = build::flattenRows(b, loc, op.getU());
    int64_t rows = build::shapeOf(u)[0], width = build::shapeOf(u)[1];
    SmallVector<int64_t> pairs{rows, width, width};
    Value own = build::broadcast(b, loc, build::reshape(b, loc, u, {rows, width, 1}), pairs);
    Value other = build::broadcast(b, loc, build::reshape(b, loc, u, {rows, 1, width}), pairs);
    auto number = [&](int64_t axis) -> Value {
      return IotaOp::create(b, loc, RankedTensorType::get(pairs, b.getI32Type()),
                            b.getI64ArrayAttr(pairs), b.getI64IntegerAttr(axis), TypeAttr());
    };
    auto holds = [&](Value x, Value y, StringRef is) {
      Value truth = CompareOp::create(b, loc, x, y, b.getStringAttr(is));
      return build::cast(b, loc, truth, b.getF32Type());
    };
    Value tie = MulOp::create(b, loc, holds(other, own, "eq"), holds(number(2), number(1), "lt"));
    Value before = AddOp::create(b, loc, holds(other, own, "gt"), tie);
    Value rank = build::sum(b, loc, before, {2});
    Value k = build::constant(b, loc, rank.getType(), op.getK());
    Value chosen = CompareOp::create(b, loc, rank, k, b.getStringAttr("lt"));
    return {build::reshape(b, loc, chosen, build::shapeOf(op.getU()))};
  }

  static SmallVector<Value> lower(OpBuilder &b, GlobalNormOp op) {
    Location loc = op.getLoc();
    Value total;
    for (Value v : op.getTensors()) {
      int64_t columns = build::shapeOf(v).empty() ? 1 : build::shapeOf(v).back();
      int64_t rows = build::typeOf(v).getNumElements() / columns;
      Value x = build::cast(b, loc, build::reshape(b, loc, v, {rows, columns}), b.getF32Type());
      Value sum = build::sum(b, loc, MulOp::create(b, loc, x, x), {0, 1});
      total = total ? AddOp::create(b, loc, total, sum) : sum;
    }
    return {SqrtOp::create(b, loc, total)};
  }
};

} // namespace
} // namespace hydra
