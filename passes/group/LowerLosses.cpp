// hydra-lower-losses: losses and norms over many rows become row-wise operations and sums.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/group/RowLoss.h"

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
      if (isa<CrossEntropyOp, CrossEntropyGradOp, GlobalNormOp>(op))
        found.push_back(op);
    });
    for (Operation *op : found) {
      OpBuilder b(op);
      if (auto loss = dyn_cast<CrossEntropyOp>(op))
        op->replaceAllUsesWith(lower(b, loss));
      else if (auto gradient = dyn_cast<CrossEntropyGradOp>(op))
        op->replaceAllUsesWith(ValueRange(lower(b, gradient)));
      else
        op->replaceAllUsesWith(ValueRange(lower(b, cast<GlobalNormOp>(op))));
      op->erase();
      ++lowered;
    }
  }

private:
  static RowLoss rowLoss(OpBuilder &b, Location loc, Value logits, Value labels) {
    Value z = build::cast(b, loc, build::flattenRows(b, loc, logits), b.getF32Type());
    return {b, loc, z, build::reshape(b, loc, labels, {build::shapeOf(z)[0]})};
  }

  static SmallVector<Value> lower(OpBuilder &b, CrossEntropyOp op) {
    Location loc = op.getLoc();
    RowLoss rows = rowLoss(b, loc, op.getLogits(), op.getLabels());
    Value lse = rows.logSumExp();
    Value share = RowLoss::shareOfRow(b, loc, rows.labels);
    SmallVector<Value> results{MulOp::create(b, loc, rows.loss(lse), share)};
    if (op.getSaving())
      results.push_back(build::reshape(b, loc, lse, build::shapeOf(op.getLse())));
    return results;
  }

  static Value lower(OpBuilder &b, CrossEntropyGradOp op) {
    Location loc = op.getLoc();
    RowLoss rows = rowLoss(b, loc, op.getLogits(), op.getLabels());
    Value lse = build::reshape(b, loc, op.getLse(), build::shapeOf(rows.labels));
    Value share = RowLoss::shareOfRow(b, loc, rows.labels);
    Value gradient = rows.gradient(lse, MulOp::create(b, loc, op.getDloss(), share));
    RankedTensorType type = build::typeOf(op.getDlogits());
    gradient = build::cast(b, loc, gradient, type.getElementType());
    return build::reshape(b, loc, gradient, type.getShape());
  }

  static Value lower(OpBuilder &b, GlobalNormOp op) {
    Location loc = op.getLoc();
    Value total;
    for (Value v : op.getTensors()) {
      int64_t columns = build::shapeOf(v).empty() ? 1 : build::shapeOf(v).back();
      int64_t rows = build::typeOf(v).getNumElements() / columns;
      Value x = build::cast(b, loc, build::reshape(b, loc, v, {rows, columns}), b.getF32Type());
      Value sum = build::sum(b, loc, MulOp::create(b, loc, x, x), {0, 1});
      total = total ? AddOp::create(b, loc, total, sum) : sum;
    }
    return SqrtOp::create(b, loc, total);
  }
};

} // namespace
} // namespace hydra
