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

/// Whether a value is the same all along an axis because it is repeated there.
bool isRepeatedAlong(Value v, int64_t axis) {
  auto broadcast = v.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return false;
  ArrayRef<int64_t> from = build::shapeOf(broadcast.getX());
  const int64_t own = axis - (build::shapeOf(v).size() - from.size());
  return own < 0 || from[own] == 1;
}

/// Another `size` of it.
Value repeatedAlong(OpBuilder &b, Location loc, Value v, int64_t axis, int64_t size) {
  SmallVector<int64_t> shape(build::shapeOf(v));
  shape[axis] = size;
  return build::broadcast(b, loc, v.getDefiningOp<BroadcastOp>().getX(), shape);
}

/// Elements of an axis of arithmetic that nothing else reads are all that is computed of it, where
/// that is arithmetic on what is moved, repeated or given: what else computes could no longer be
/// one group with it.
struct SliceBeforeArithmetic : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    if (!isArithmetic(op.getX(), op.getAxis()))
      return failure();
    rewriter.replaceOp(op, partOf(rewriter, op, op.getX()));
    return success();
  }

private:
  /// Whether a value is such arithmetic, for one reader.
  static bool isArithmetic(Value v, int64_t axis) {
    Operation *op = v.getDefiningOp();
    return op && op->hasTrait<Elementwise>() && op->getNumResults() == 1 && v.hasOneUse() &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             Operation *from = operand.getDefiningOp();
             return build::shapeOf(operand) == build::shapeOf(v) &&
                    (!from || isa<PadOp, SliceOp, UseOp, ConstantOp>(from) ||
                     isRepeatedAlong(operand, axis) || isArithmetic(operand, axis));
           });
  }

  /// The elements of a value that a slice is of. What is repeated or constant along the axis is so
  /// for fewer elements. Arithmetic is cloned as a whole: what was replaced reads its operands
  /// until the next iteration, so that a chain would need one for each operation.
  static Value partOf(OpBuilder &b, SliceOp op, Value v) {
    const Location loc = madeBy(kPass, op.getLoc());
    const int64_t axis = op.getAxis(), size = op.getSize();
    if (isRepeatedAlong(v, axis))
      return repeatedAlong(b, loc, v, axis, size);
    SmallVector<int64_t> shape(build::shapeOf(v));
    shape[axis] = size;
    if (auto constant = v.getDefiningOp<ConstantOp>())
      return build::constant(b, loc, build::typeOf(v).clone(shape), constant.getValue());
    Operation *made = v.getDefiningOp();
    if (!made || !made->hasTrait<Elementwise>())
      return build::slice(b, loc, v, axis, op.getStart(), size);
    IRMapping parts;
    for (Value operand : made->getOperands())
      if (!parts.contains(operand))
        parts.map(operand, partOf(b, op, operand));
    Operation *part = b.clone(*made, parts);
    part->setLoc(madeBy(kPass, made->getLoc()));
    part->getResult(0).setType(build::typeOf(v).clone(shape));
    return part->getResult(0);
  }
};

bool isPadAlong(Operation *op, int64_t axis) {
  auto pad = dyn_cast_or_null<PadOp>(op);
  return pad && static_cast<int64_t>(pad.getAxis()) == axis;
}

/// Rows that are scaled in several ways and then padded are padded once, and scaled as they are
/// read.
struct PadBeforeScale : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PadOp op, PatternRewriter &rewriter) const override {
    const int64_t axis = op.getAxis();
    auto scaled = scaledRows(op.getX(), axis);
    if (!scaled)
      return failure();
    auto [rows, scale] = *scaled;
    const auto isPaddedToo = [&](Operation *user) {
      return user != op.getX().getDefiningOp() &&
             (isPadAlong(user, axis) ||
              (user->getNumResults() == 1 && scaledRows(user->getResult(0), axis) &&
               isPadAlong(*user->user_begin(), axis)));
    };
    if (llvm::none_of(rows.getUsers(), isPaddedToo))
      return failure();
    const Location loc = madeBy(kPass, op.getLoc());
    Value padded = padOf(rewriter, loc, rows, axis, op.getBefore(), op.getAfter());
    rewriter.replaceOpWithNewOp<MulOp>(
        op, padded, repeatedAlong(rewriter, loc, scale, axis, build::shapeOf(op.getY())[axis]));
    return success();
  }

private:
  /// What is multiplied, and with what that is the same for all its rows; for that reader alone.
  static std::optional<std::pair<Value, Value>> scaledRows(Value v, int64_t axis) {
    auto mul = v.getDefiningOp<MulOp>();
    if (!mul || !v.hasOneUse())
      return std::nullopt;
    for (auto [rows, scale] :
         {std::pair(mul.getA(), mul.getB()), std::pair(mul.getB(), mul.getA())})
      if (isRepeatedAlong(scale, axis) && !isRepeatedAlong(rows, axis))
        return std::pair<Value, Value>(rows, scale);
    return std::nullopt;
  }
};

/// Rows that are padded in several ways, as for shifts, are padded once, as far as any of them,
/// where arithmetic reads them. Others are written where they are joined.
struct SharePads : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PadOp op, PatternRewriter &rewriter) const override {
    const int64_t axis = op.getAxis();
    Value rows = windowOf(op).rows;
    SmallVector<std::pair<PadOp, Window>> pads;
    const auto find = [&](Value v) {
      for (Operation *user : v.getUsers())
        if (isPadAlong(user, axis) && isComputedWith(user))
          if (const Window window = windowOf(cast<PadOp>(user)); window.rows == rows)
            pads.emplace_back(user, window);
    };
    find(rows);
    for (Operation *user : rows.getUsers())
      if (isa<SliceOp>(user))
        find(user->getResult(0));
    if (pads.size() < 2)
      return failure();
    int64_t before = 0, after = 0;
    for (auto [pad, window] : pads) {
      before = std::max(before, -window.begin);
      after = std::max(after, window.end - build::shapeOf(rows)[axis]);
    }
    const Location loc = madeBy(kPass, op.getLoc());
    rewriter.setInsertionPointAfterValue(rows);
    Value padded = padOf(rewriter, loc, rows, axis, before, after);
    for (auto [pad, window] : pads)
      rewriter.replaceOp(pad, build::partOf(rewriter, loc, padded, axis, before + window.begin,
                                            window.end - window.begin));
    return success();
  }

private:
  /// Numbers begin .. end along the axis of rows with zeros on both sides.
  struct Window {
    Value rows;
    int64_t begin, end;
  };

  /// Whether arithmetic alone reads what an operation makes, or slices of it.
  static bool isComputedWith(Operation *op) {
    return !op->use_empty() && llvm::all_of(op->getUsers(), [](Operation *user) {
      return user->hasTrait<Elementwise>() || (isa<SliceOp>(user) && isComputedWith(user));
    });
  }

  /// Of the rows of a slice, where padding does not hide what they have there.
  static Window windowOf(PadOp pad) {
    const int64_t before = pad.getBefore(), after = pad.getAfter(), axis = pad.getAxis(),
                  size = build::shapeOf(pad.getX())[axis];
    auto slice = pad.getX().getDefiningOp<SliceOp>();
    if (!slice || static_cast<int64_t>(slice.getAxis()) != axis)
      return Window{pad.getX(), -before, size + after};
    const int64_t start = slice.getStart();
    const bool hides = (before > 0 && start > 0) ||
                       (after > 0 && start + size < build::shapeOf(slice.getX())[axis]);
    return hides ? Window{pad.getX(), -before, size + after}
                 : Window{slice.getX(), start - before, start + size + after};
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

/// A sum of a few slices along a dimension between others is their sum number by number. Groups sum
/// along the last dimensions, or over all rows; numbers are transposed for that, which is far more
/// bytes.
struct AddFewSlices : OpRewritePattern<SumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SumOp op, PatternRewriter &rewriter) const override {
    if (op.getAxes().size() != 1)
      return failure();
    const int64_t rank = build::shapeOf(op.getX()).size(), given = op.getAxes()[0];
    auto [x, axis] = source(op.getX(), given < 0 ? given + rank : given);
    ArrayRef<int64_t> shape = build::shapeOf(x);
    const auto elements = [](ArrayRef<int64_t> sizes) {
      return llvm::product_of(sizes, int64_t(1));
    };
    if (!build::typeOf(x).getElementType().isF32() || shape[axis] < 2 || shape[axis] > kFew ||
        elements(shape.take_front(axis)) == 1 || elements(shape.drop_front(axis + 1)) < kLeastInner)
      return failure();
    const Location loc = madeBy(kPass, op.getLoc());
    SmallVector<Value> parts;
    for (int64_t i = 0; i < shape[axis]; ++i)
      parts.push_back(build::slice(rewriter, loc, x, axis, i, 1));
    // In the order in which a row's lanes add up.
    for (size_t half = llvm::PowerOf2Ceil(parts.size()) / 2; half > 0; half /= 2) {
      for (size_t i = 0; i + half < parts.size(); ++i)
        parts[i] = AddOp::create(rewriter, loc, parts[i], parts[i + half]);
      parts.truncate(std::min(half, parts.size()));
    }
    rewriter.replaceOp(op, build::reshape(rewriter, loc, parts.front(), build::shapeOf(op.getY())));
    return success();
  }

private:
  static constexpr int64_t kFew = 8;
  static constexpr int64_t kLeastInner =
      64; ///< numbers side by side, as many as lines of memory have

  /// What a transposition that only moves a dimension to this axis has moved, and from where; else
  /// the same.
  static std::pair<Value, int64_t> source(Value x, int64_t axis) {
    auto transpose = x.getDefiningOp<TransposeOp>();
    if (!transpose)
      return {x, axis};
    SmallVector<int64_t> order(transpose.getOrder());
    const int64_t from = order[axis];
    order.erase(order.begin() + axis);
    return llvm::is_sorted(order) ? std::pair(transpose.getX(), from) : std::pair(x, axis);
  }
};

/// Each shortens the longest chains of moves by one at least.
constexpr int64_t kMostRounds = 1000;

struct SimplifyMoves : impl::SimplifyMovesBase<SimplifyMoves> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<SliceBeforePad, SliceBeforeArithmetic, MergePads, PadBeforeScale, SharePads,
                 ComputeIndices, AddFewSlices>(&getContext());
    struct Counter : RewriterBase::Listener {
      unsigned rewritten = 0;
      void notifyOperationReplaced(Operation *, ValueRange) override { ++rewritten; }
    } counter;
    GreedyRewriteConfig config;
    config.setListener(&counter);
    config.enableFolding(false);
    config.setMaxIterations(kMostRounds);
    if (failed(applyPatternsGreedily(model, std::move(patterns), config))) {
      model.emitError() << "moves are not simple after " << kMostRounds << " rounds";
      return signalPassFailure();
    }
    simplified += counter.rewritten;
  }
};

} // namespace
} // namespace hydra
