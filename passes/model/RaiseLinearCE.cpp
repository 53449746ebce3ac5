// hydra-raise-linear-ce: a linear layer before a cross entropy becomes one operation with it.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_RAISELINEARCE
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-raise-linear-ce";

/// x and w of logits x wᵀ.
struct Projection {
  Operation *op;
  Value x, w;
  TypeAttr compute; ///< the format that they are multiplied in
};

/// The matmul that logits are, itself or with its rows in another shape, if nothing else reads it.
FailureOr<Projection> projectionOf(Value logits) {
  if (!logits.hasOneUse())
    return failure();
  Operation *op = logits.getDefiningOp();
  if (auto linear = dyn_cast_if_present<LinearOp>(op))
    return linear.getB() ? FailureOr<Projection>(failure())
                         : Projection{op, linear.getX(), linear.getW(), linear.getComputeAttr()};
  if (auto matmul = dyn_cast_if_present<MatmulOp>(op)) {
    bool plain = !matmul.getAddend() && !matmul.getFullPrecision() && !matmul.getTransposeA() &&
                 matmul.getTransposeB() && build::shapeOf(matmul.getB()).size() == 2;
    return plain ? Projection{op, matmul.getA(), matmul.getB(), matmul.getComputeAttr()}
                 : FailureOr<Projection>(failure());
  }
  if (auto reshape = dyn_cast_if_present<ReshapeOp>(op))
    if (ArrayRef<int64_t> shape = build::shapeOf(reshape.getX());
        !shape.empty() && shape.back() == build::shapeOf(logits).back())
      return projectionOf(reshape.getX());
  return failure();
}

struct RaiseLinearCE : impl::RaiseLinearCEBase<RaiseLinearCE> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto loss : llvm::make_early_inc_range(entry.getBody().front().getOps<CrossEntropyOp>()))
        if (!loss.getSaving())
          raise(loss);
  }

private:
  void raise(CrossEntropyOp loss) {
    Value logits = loss.getLogits();
    FailureOr<Projection> projection = projectionOf(logits);
    if (failed(projection))
      return;
    OpBuilder b(loss);
    SmallVector<int64_t> shape(build::shapeOf(loss.getLabels()));
    shape.push_back(build::shapeOf(projection->x).back());
    Value x = build::reshape(b, madeBy(kPass, loss.getLoc()), projection->x, shape);
    auto fused = LinearCrossEntropyOp::create(b, madeBy(kPass, loss.getLoc()), x, projection->w,
                                              loss.getLabels(), loss.getCount(),
                                              /*rows=*/UnitAttr(), /*saving=*/UnitAttr(),
                                              /*reduced_reduction=*/UnitAttr(), projection->compute,
                                              /*rounded_logits=*/UnitAttr());
    loss.getLoss().replaceAllUsesWith(fused.getLoss());
    loss.erase();
    for (Operation *op = logits.getDefiningOp(); op && isOpTriviallyDead(op);) {
      Operation *next = op == projection->op ? nullptr : op->getOperand(0).getDefiningOp();
      op->erase();
      op = next;
    }
    ++raised;
  }
};

} // namespace
} // namespace hydra
