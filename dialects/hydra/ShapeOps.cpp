// Operations that move elements without computing.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace hydra {

#define SHAPE_COST(Op)                                                                             \
  int64_t Op::flops() { return 0; }                                                                \
  OpClass Op::costClass() { return OpClass::copy_cast; }                                           \
  Precision Op::precisionClass() { return Precision::Move; }

#define VIEW_OF_FIRST(Op)                                                                          \
  SHAPE_COST(Op)                                                                                   \
  std::optional<unsigned> Op::viewedOperand() { return 0; }                                        \
  OperandLayout Op::operandLayout(unsigned) {                                                      \
    return {/*denseInner=*/0, /*mergedRows=*/false, /*apartRows=*/false, /*alignment=*/1};         \
  }

/// Elements are copied from and to wherever they lie.
#define COPIES(Op)                                                                                 \
  SHAPE_COST(Op)                                                                                   \
  OperandLayout Op::operandLayout(unsigned) {                                                      \
    return {/*denseInner=*/0, /*mergedRows=*/false, /*apartRows=*/false, /*alignment=*/1};         \
  }                                                                                                \
  OperandLayout Op::resultLayout(unsigned) { return operandLayout(0); }

VIEW_OF_FIRST(BroadcastOp)
VIEW_OF_FIRST(ReshapeOp)
VIEW_OF_FIRST(TransposeOp)
VIEW_OF_FIRST(SliceOp)
COPIES(ConcatOp)
COPIES(PadOp)
COPIES(CopyOp)

#undef VIEW_OF_FIRST
#undef SHAPE_COST

/// Copies elements of `in` picked by a view of it.
static LogicalResult gatherView(const StridedView &view, const RefTensor &in, RefTensor &out) {
  double *to = out.data.data();
  forEachIndex(out.shape,
               [&](ArrayRef<int64_t> i) { *to++ = in.data[view.offset + at(i, view.strides)]; });
  return success();
}

//===-- broadcast ---------------------------------------------------------------------------===//

LogicalResult BroadcastOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> to = op.getShape();
  ArrayRef<int64_t> from = infer.shape(op.getX());
  if (failed(infer.wantPositive(to)))
    return failure();
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    int64_t d = from[from.size() - 1 - i];
    fits = d == 1 || d == to[to.size() - 1 - i];
  }
  if (!fits)
    return infer.fail("cannot broadcast " + shapeText(from) + " to " + shapeText(to));
  types.push_back(infer.tensor(to, infer.element(op.getX())));
  return success();
}

FailureOr<StridedView> BroadcastOp::view(ArrayRef<int64_t> strides) {
  ArrayRef<int64_t> from = build::shapeOf(getX()), to = build::shapeOf(getY());
  StridedView v{0, SmallVector<int64_t>(to.size(), 0)};
  size_t missing = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    v.strides[missing + i] = from[i] == 1 ? 0 : strides[i];
  return v;
}

LogicalResult BroadcastOp::evaluate(ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out) {
  return gatherView(*view(denseStrides(in[0]->shape)), *in[0], out[0]);
}

void BroadcastOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = build::sumTo(b, getLoc(), g[0], build::shapeOf(getX()));
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return !isUnbound(getType()) && getX().getType() == getType() ? OpFoldResult(getX())
                                                                : OpFoldResult();
}

//===-- reshape -----------------------------------------------------------------------------===//

LogicalResult ReshapeOp::inferTypes(TypeInference &infer, Adaptor op,
                                    SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> to = op.getShape();
  ArrayRef<int64_t> from = infer.shape(op.getX());
  if (failed(infer.wantPositive(to)))
    return failure();
  int64_t want = RefTensor::elements(from), have = RefTensor::elements(to);
  if (want != have)
    return infer.fail("cannot reshape " + shapeText(from) + " (" + Twine(want) + " elements) to " +
                      shapeText(to) + " (" + Twine(have) + ")");
  types.push_back(infer.tensor(to, infer.element(op.getX())));
  return success();
}

FailureOr<SmallVector<int64_t>> reshapedStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> strides,
                                                ArrayRef<int64_t> to) {
  // Old dimensions that lie densely behind one another form blocks; each new dimension must divide
  // what is left of one block.
  SmallVector<int64_t> result(to.size(), 1);
  size_t j = to.size();
  for (size_t i = from.size(); i > 0;) {
    int64_t block = from[i - 1], stride = strides[i - 1];
    --i;
    while (i > 0 && (block == 1 || strides[i - 1] == stride * block || from[i - 1] == 1)) {
      if (block == 1)
        stride = strides[i - 1];
      block *= from[i - 1];
      --i;
    }
    while (j > 0 && (block > 1 || to[j - 1] == 1)) {
      if (block % to[j - 1] != 0)
        return failure();
      result[j - 1] = stride;
      stride *= to[j - 1];
      block /= to[j - 1];
      --j;
    }
    if (block != 1)
      return failure();
  }
  return result;
}

FailureOr<StridedView> ReshapeOp::view(ArrayRef<int64_t> strides) {
  FailureOr<SmallVector<int64_t>> result =
      reshapedStrides(build::shapeOf(getX()), strides, build::shapeOf(getY()));
  if (failed(result))
    return failure();
  return StridedView{0, *result};
}

RowUse ReshapeOp::rowUse(unsigned) {
  ArrayRef<int64_t> from = build::shapeOf(getX()), to = build::shapeOf(getY());
  bool keeps = !from.empty() && !to.empty() && from.front() == to.front();
  return keeps ? RowUse::Each : RowUse::All;
}

LogicalResult ReshapeOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  out[0].data = in[0]->data;
  return success();
}

void ReshapeOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = build::reshape(b, getLoc(), g[0], build::shapeOf(getX()));
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  return !isUnbound(getType()) && getX().getType() == getType() ? OpFoldResult(getX())
                                                                : OpFoldResult();
}

namespace {
struct MergeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<ReshapeOp>();
    if (!inner || isUnbound(op.getType()))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, inner.getX(), op.getShapeAttr());
    return success();
  }
};

struct MergeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<TransposeOp>();
    if (!inner || isUnbound(op.getType()))
      return failure();
    SmallVector<int64_t> first = inner.getOrder(), order;
    for (int64_t d : op.getOrder())
      order.push_back(first[d]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getX(), rewriter.getI64ArrayAttr(order));
    return success();
  }
};
} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MergeReshapes>(context);
}

//===-- transpose ---------------------------------------------------------------------------===//

LogicalResult TransposeOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> order = op.getOrder(), shape;
  ArrayRef<int64_t> from = infer.shape(op.getX());
  SmallVector<int64_t> sorted = order;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, from.size())))
    return infer.fail("order " + shapeText(order) + " does not permute the " + Twine(from.size()) +
                      " dimensions of " + shapeText(from));
  for (int64_t d : order)
    shape.push_back(from[d]);
  types.push_back(infer.tensor(shape, infer.element(op.getX())));
  return success();
}

FailureOr<StridedView> TransposeOp::view(ArrayRef<int64_t> strides) {
  StridedView v;
  for (int64_t d : getOrder())
    v.strides.push_back(strides[d]);
  return v;
}

LogicalResult TransposeOp::evaluate(ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out) {
  return gatherView(*view(denseStrides(in[0]->shape)), *in[0], out[0]);
}

void TransposeOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  SmallVector<int64_t> inverse(getOrder().size());
  for (auto [i, d] : llvm::enumerate(getOrder()))
    inverse[d] = i;
  grads[0] = TransposeOp::create(b, getLoc(), g[0], b.getI64ArrayAttr(inverse));
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (isUnbound(getType()))
    return {};
  SmallVector<int64_t> order = getOrder();
  return llvm::equal(order, llvm::seq<int64_t>(0, order.size())) ? OpFoldResult(getX())
                                                                 : OpFoldResult();
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MergeTransposes>(context);
}

//===-- slice -------------------------------------------------------------------------------===//

LogicalResult SliceOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape(infer.shape(op.getX()));
  int64_t axis = op.getAxis(), start = op.getStart(), size = op.getSize();
  if (axis < 0 || failed(infer.wantAxis(axis, shape.size())))
    return axis < 0 ? infer.fail("axis " + Twine(axis) + " is negative") : failure();
  if (start < 0 || size < 1 || start > shape[axis] || size > shape[axis] - start)
    return infer.fail(Twine(size) + " elements from " + Twine(start) + " of axis " + Twine(axis) +
                      " are not inside " + shapeText(shape));
  shape[axis] = size;
  types.push_back(infer.tensor(shape, infer.element(op.getX())));
  return success();
}

FailureOr<StridedView> SliceOp::view(ArrayRef<int64_t> strides) {
  return StridedView{getStart() * strides[getAxis()], SmallVector<int64_t>(strides)};
}

RowUse SliceOp::rowUse(unsigned) { return getAxis() == 0 ? RowUse::All : RowUse::Each; }

LogicalResult SliceOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  return gatherView(*view(denseStrides(in[0]->shape)), *in[0], out[0]);
}

void SliceOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  int64_t after = build::shapeOf(getX())[getAxis()] - getStart() - getSize();
  grads[0] =
      PadOp::create(b, getLoc(), g[0], getAxisAttr(), getStartAttr(), b.getI64IntegerAttr(after));
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  return !isUnbound(getType()) && getX().getType() == getType() ? OpFoldResult(getX())
                                                                : OpFoldResult();
}

//===-- copy --------------------------------------------------------------------------------===//

LogicalResult CopyOp::inferTypes(TypeInference &, Adaptor op, SmallVectorImpl<Type> &types) {
  types.push_back(op.getX().getType());
  return success();
}

LogicalResult CopyOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  out[0].data = in[0]->data;
  return success();
}

void CopyOp::vjp(OpBuilder &, ValueRange g, MutableArrayRef<Value> grads) { grads[0] = g[0]; }

//===-- concat, pad -------------------------------------------------------------------------===//

LogicalResult ConcatOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (op.getParts().empty())
    return infer.fail("has no operands; expected at least 1");
  SmallVector<int64_t> shape(infer.shape(op.getParts()[0]));
  Type element = infer.element(op.getParts()[0]);
  int64_t axis = op.getAxis();
  if (axis < 0 || failed(infer.wantAxis(axis, shape.size())))
    return axis < 0 ? infer.fail("axis " + Twine(axis) + " is negative") : failure();
  int64_t total = 0;
  for (auto [i, part] : llvm::enumerate(op.getParts())) {
    SmallVector<int64_t> want(shape);
    if (infer.shape(part).size() == want.size())
      want[axis] = infer.shape(part)[axis];
    if (failed(infer.wantShape(part, "operand " + std::to_string(i), want)))
      return failure();
    if (infer.element(part) != element)
      return infer.fail("operands have different element types");
    total = std::min(total + want[axis], int64_t{1} << 61); // an absurd sum stays a number
  }
  shape[axis] = total;
  types.push_back(infer.tensor(shape, element));
  return success();
}

RowUse ConcatOp::rowUse(unsigned) { return getAxis() == 0 ? RowUse::All : RowUse::Each; }

LogicalResult ConcatOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  SmallVector<int64_t> strides = denseStrides(out[0].shape);
  int64_t start = 0;
  for (const RefTensor *part : in) {
    const double *from = part->data.data();
    forEachIndex(part->shape, [&](ArrayRef<int64_t> i) {
      out[0].data[at(i, strides) + start * strides[getAxis()]] = *from++;
    });
    start += part->shape[getAxis()];
  }
  return success();
}

void ConcatOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  int64_t start = 0;
  for (auto [i, part] : llvm::enumerate(getParts())) {
    int64_t size = build::shapeOf(part)[getAxis()];
    grads[i] = SliceOp::create(b, getLoc(), g[0], getAxisAttr(), b.getI64IntegerAttr(start),
                               b.getI64IntegerAttr(size));
    start += size;
  }
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getParts().size() == 1 ? OpFoldResult(getParts()[0]) : OpFoldResult();
}

LogicalResult PadOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape(infer.shape(op.getX()));
  int64_t axis = op.getAxis();
  if (axis < 0 || failed(infer.wantAxis(axis, shape.size())))
    return axis < 0 ? infer.fail("axis " + Twine(axis) + " is negative") : failure();
  if (op.getBefore() < 0 || op.getAfter() < 0)
    return infer.fail("pads by " + Twine(op.getBefore()) + " and " + Twine(op.getAfter()) +
                      "; expected no negative number");
  constexpr int64_t kMost = int64_t{1} << 48; // so that the sum is a number
  if (op.getBefore() > kMost || op.getAfter() > kMost)
    return infer.fail("pads by " + Twine(op.getBefore()) + " and " + Twine(op.getAfter()) +
                      "; expected at most 2^48");
  shape[axis] += op.getBefore() + op.getAfter();
  types.push_back(infer.tensor(shape, infer.element(op.getX())));
  return success();
}

LogicalResult PadOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  SmallVector<int64_t> strides = denseStrides(out[0].shape);
  const double *from = in[0]->data.data();
  forEachIndex(in[0]->shape, [&](ArrayRef<int64_t> i) {
    out[0].data[at(i, strides) + getBefore() * strides[getAxis()]] = *from++;
  });
  return success();
}

void PadOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = SliceOp::create(b, getLoc(), g[0], getAxisAttr(), getBeforeAttr(),
                             b.getI64IntegerAttr(build::shapeOf(getX())[getAxis()]));
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  return !isUnbound(getType()) && getX().getType() == getType() ? OpFoldResult(getX())
                                                                : OpFoldResult();
}

} // namespace hydra
