// hydra-simplify-moves: elements are not moved where a smaller move or arithmetic on indices gives
// the same.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SIMPLIFYMOVES
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-simplify-moves";

Value padOf(OpBuilder &b, Location loc, Value x, int64_t axis, int64_t before, int64_t after) {
  if (before == 0 && after == 0)
    return x;
  return PadOp::create(b, loc, x, b.getI64IntegerAttr(axis), b.getI64IntegerAttr(before),
                       b.getI64IntegerAttr(after));
}

/// A part of padded rows is padding around a part of the rows, which is all that is moved.
struct SliceBeforePad : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto pad = op.getX().getDefiningOp<PadOp>();
    if (!pad)
      return failure();
    const Location loc = madeBy(kPass, op.getLoc());
    const int64_t axis = pad.getAxis(), start = op.getStart(), end = start + op.getSize();
    if (static_cast<int64_t>(op.getAxis()) != axis) {
      if (!pad->hasOneUse())
        return failure();
      Value part = build::partOf(rewriter, loc, pad.getX(), op.getAxis(), start, op.getSize());
      rewriter.replaceOp(op, padOf(rewriter, loc, part, axis, pad.getBefore(), pad.getAfter()));
      return success();
    }
    const int64_t first = pad.getBefore(), last = first + build::shapeOf(pad.getX())[axis];
    const int64_t begin = std::max(start, first), stop = std::min(end, last);
    if (begin >= stop) { // padding alone
      rewriter.replaceOp(op, build::constant(rewriter, loc, op.getType(), 0.0));
      return success();
    }
    // Others read the padded rows anyway, and a view of those costs nothing; unless it is padded
    // again.
    const auto pads = [&](Operation *user) {
      auto outer = dyn_cast<PadOp>(user);
      return outer && static_cast<int64_t>(outer.getAxis()) == axis;
    };
    if (!pad->hasOneUse() && (begin != start || stop != end) && !llvm::all_of(op->getUsers(), pads))
      return failure();
    Value part = build::partOf(rewriter, loc, pad.getX(), axis, begin - first, stop - begin);
    rewriter.replaceOp(op, padOf(rewriter, loc, part, axis, begin - start, end - stop));
    return success();
  }
};

/// Padding around padding is one.
struct MergePads : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PadOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<PadOp>();
    if (!inner || inner.getAxis() != op.getAxis())
      return failure();
    rewriter.replaceOp(op,
                       padOf(rewriter, madeBy(kPass, op.getLoc()), inner.getX(), op.getAxis(),
                             op.getBefore() + inner.getBefore(), op.getAfter() + inner.getAfter()));
    return success();
  }
};

/// What indices and constants alone say, computed for all elements of a larger shape.
class IndexArithmetic {
public:
  IndexArithmetic(OpBuilder &b, ArrayRef<int64_t> shape) : b(b), shape(shape) {}

  /// Whether a value is some operations on indices and constants.
  static bool is(Value v, unsigned operations = kMostOperations) {
    Operation *op = v.getDefiningOp();
    if (!op)
      return false;
    if (isa<ConstantOp, IotaOp>(op))
      return true;
    if (isa<BroadcastOp>(op))
      return is(op->getOperand(0), operations);
    return operations > 0 && op->hasTrait<Elementwise>() && op->getNumResults() == 1 &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) { return is(operand, operations - 1); });
  }

  Value build(Value v) {
    Operation *op = v.getDefiningOp();
    const Location loc = madeBy(kPass, op->getLoc());
    RankedTensorType type = build::typeOf(v).clone(shape);
    if (auto constant = dyn_cast<ConstantOp>(op))
      return build::constant(b, loc, type, constant.getValue());
    if (isa<BroadcastOp>(op))
      return build(op->getOperand(0));
    if (auto iota = dyn_cast<IotaOp>(op)) {
      const int64_t missing = shape.size() - build::shapeOf(v).size();
      if (build::shapeOf(v)[iota.getAxis()] == 1)
        return build::constant(b, loc, type, 0.0);
      return IotaOp::create(b, loc, type, b.getI64ArrayAttr(shape),
                            b.getI64IntegerAttr(iota.getAxis() + missing), iota.getDtypeAttr());
    }
    IRMapping operands;
    for (Value operand : op->getOperands())
      if (!operands.contains(operand))
        operands.map(operand, build(operand));
    Operation *copy = b.clone(*op, operands);
    copy->setLoc(loc);
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }

private:
  static constexpr unsigned kMostOperations = 4; ///< in a chain

  OpBuilder &b;
  ArrayRef<int64_t> shape;
};

/// Whether a broadcast repeats along dimensions on both sides of some that it keeps, or between
/// them: no group has rows and columns of which it would be one or the other.
bool isMixed(BroadcastOp op) {
  ArrayRef<int64_t> from = build::shapeOf(op.getX()), to = build::shapeOf(op.getY());
  const size_t missing = to.size() - from.size();
  unsigned changes = 0;
  std::optional<bool> repeats;
  for (auto [i, size] : llvm::enumerate(to)) {
    if (size == 1)
      continue;
    const bool own = i < missing || from[i - missing] == 1;
    changes += repeats && *repeats != own;
    repeats = own;
  }
  return changes > 1;
}

/// Groups compute what indices say where they need it, in place of reading it from memory.
struct ComputeIndices : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    if (!isMixed(op) || !IndexArithmetic::is(op.getX()))
      return failure();
    rewriter.replaceOp(op, IndexArithmetic(rewriter, build::shapeOf(op.getY())).build(op.getX()));
    return success();
  }
};

struct SimplifyMoves : impl::SimplifyMovesBase<SimplifyMoves> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<SliceBeforePad, MergePads, ComputeIndices>(&getContext());
    struct Counter : RewriterBase::Listener {
      unsigned rewritten = 0;
      void notifyOperationReplaced(Operation *, ValueRange) override { ++rewritten; }
    } counter;
    GreedyRewriteConfig config;
    config.setListener(&counter);
    config.enableFolding(false);
    if (failed(applyPatternsGreedily(model, std::move(patterns), config)))
      return signalPassFailure();
    simplified += counter.rewritten;
  }
};

} // namespace
} // namespace hydra
