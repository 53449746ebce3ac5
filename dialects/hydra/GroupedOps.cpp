// Matmuls of rows in groups, each of which has a matrix of its own.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Reference.h"

using namespace mlir;

namespace hydra {

//===-- What both have in common ------------------------------------------------------------===//

/// Checks operands that are multiplied, and the offsets of `groups` groups (0: of any number).
static LogicalResult wantGroups(TypeInference &infer, Value a, Value b, Value offsets,
                                int64_t groups) {
  if (failed(infer.wantFloat(a, "first operand")) ||
      failed(infer.wantRank(a, "first operand", 2)) ||
      failed(infer.wantInteger(offsets, "offsets")) ||
      failed(infer.wantRank(offsets, "offsets", 1)))
    return failure();
  if (infer.element(a) != infer.element(b))
    return infer.fail("operands have different element types");
  const int64_t numbers = infer.shape(offsets)[0];
  if (groups > 0 && numbers != groups + 1)
    return infer.fail("has " + Twine(numbers) + " offsets of " + Twine(groups) +
                      " groups; expected " + Twine(groups + 1));
  if (numbers < 2)
    return infer.fail("has one offset; expected where each group begins, and where the last ends");
  return success();
}

/// The rows [begin, end) of each group; reports what is no ascending list within `rows`.
static FailureOr<SmallVector<std::pair<int64_t, int64_t>>>
groupsOf(Operation *op, const RefTensor &offsets, int64_t rows) {
  SmallVector<std::pair<int64_t, int64_t>> groups;
  for (int64_t e = 0; e + 1 < offsets.size(); ++e) {
    const auto begin = static_cast<int64_t>(offsets.data[e]),
               end = static_cast<int64_t>(offsets.data[e + 1]);
    if ((e == 0 && begin != 0) || end < begin || end > rows)
      return op->emitOpError() << "group " << e << " has the rows " << begin << " to " << end
                               << " of " << rows;
    groups.emplace_back(begin, end);
  }
  return groups;
}

static int64_t elementsOf(Value v) { return build::typeOf(v).getNumElements(); }

#define GROUPED_OP(Op)                                                                             \
  OpClass Op::costClass() { return OpClass::gemm; }                                                \
  Precision Op::precisionClass() { return getCompute() ? Precision::Full : Precision::Matmul; }    \
  bool Op::takesRounded(unsigned) { return !getCompute(); }                                        \
  bool Op::yieldIn(Type format) {                                                                  \
    const bool sums = isSumFormat(format);                                                         \
    if (!sums && build::typeOf(getOperand(0)).getElementType() != format)                          \
      return false;                                                                                \
    if (sums)                                                                                      \
      setDtype(format);                                                                            \
    else                                                                                           \
      removeDtypeAttr();                                                                           \
    return true;                                                                                   \
  }                                                                                                \
  bool Op::multiplyIn(Type format) {                                                               \
    setCompute(format);                                                                            \
    return true;                                                                                   \
  }                                                                                                \
  Type Op::multipliedIn(unsigned operand) { return formatOfFactor(operand, getCompute()); }
GROUPED_OP(GroupedLinearOp)
GROUPED_OP(GroupedOuterOp)

//===-- grouped_linear ----------------------------------------------------------------------===//

LogicalResult GroupedLinearOp::inferTypes(TypeInference &infer, Adaptor op,
                                          SmallVectorImpl<Type> &types) {
  if (failed(infer.wantRank(op.getW(), "weight", 3)))
    return failure();
  ArrayRef<int64_t> w = infer.shape(op.getW());
  if (failed(wantGroups(infer, op.getX(), op.getW(), op.getOffsets(), w[0])))
    return failure();
  const int64_t inner = w[op.getTransposed() ? 1 : 2], width = infer.shape(op.getX())[1];
  if (inner != width)
    return infer.fail(
        "weight is " + shapeText(w) + " but the input has " + Twine(width) + " columns; expected " +
        (op.getTransposed() ? "[E, " + Twine(width) + ", N]" : "[E, N, " + Twine(width) + "]"));
  return infer.pushMatmul({infer.shape(op.getX())[0], w[op.getTransposed() ? 2 : 1]},
                          infer.element(op.getX()), op.getDtypeAttr(), op.getComputeAttr(), types);
}

LogicalResult GroupedLinearOp::evaluate(ArrayRef<const RefTensor *> in,
                                        MutableArrayRef<RefTensor> out) {
  const RefTensor &x = *in[0], &w = *in[1];
  auto groups = groupsOf(*this, *in[2], x.rows());
  if (failed(groups))
    return failure();
  const int64_t k = x.cols(), n = out[0].cols();
  const int64_t row = getTransposed() ? 1 : k, column = getTransposed() ? n : 1;
  for (auto [e, rows] : llvm::enumerate(*groups))
    for (int64_t r = rows.first; r < rows.second; ++r)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0.0;
        for (int64_t i = 0; i < k; ++i)
          sum += x.data[r * k + i] * w.data[e * n * k + j * row + i * column];
        out[0].data[r * n + j] = sum;
      }
  return success();
}

int64_t GroupedLinearOp::flops() {
  return productOf({2, elementsOf(getY()), build::shapeOf(getX())[1]});
}

void GroupedLinearOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Location loc = getLoc();
  Value dy = build::cast(b, loc, g[0], build::typeOf(getX()).getElementType());
  grads[0] = GroupedLinearOp::create(b, loc, dy, getW(), getOffsets(),
                                     getTransposed() ? UnitAttr() : b.getUnitAttr(), TypeAttr(),
                                     getComputeAttr());
  Value first = getTransposed() ? getX() : dy, second = getTransposed() ? dy : getX();
  grads[1] =
      GroupedOuterOp::create(b, loc, first, second, getOffsets(), TypeAttr(), getComputeAttr());
}

//===-- grouped_outer -----------------------------------------------------------------------===//

LogicalResult GroupedOuterOp::inferTypes(TypeInference &infer, Adaptor op,
                                         SmallVectorImpl<Type> &types) {
  if (failed(infer.wantRank(op.getB(), "second operand", 2)) ||
      failed(wantGroups(infer, op.getA(), op.getB(), op.getOffsets(), 0)))
    return failure();
  ArrayRef<int64_t> a = infer.shape(op.getA()), b = infer.shape(op.getB());
  if (a[0] != b[0])
    return infer.fail("operands are " + shapeText(a) + " and " + shapeText(b) +
                      "; expected as many rows");
  SmallVector<int64_t> shape{infer.shape(op.getOffsets())[0] - 1, a[1], b[1]};
  if (failed(infer.wantPossible(shape, "the result,")))
    return failure();
  return infer.pushMatmul(shape, infer.element(op.getA()), op.getDtypeAttr(), op.getComputeAttr(),
                          types);
}

LogicalResult GroupedOuterOp::evaluate(ArrayRef<const RefTensor *> in,
                                       MutableArrayRef<RefTensor> out) {
  const RefTensor &a = *in[0], &b = *in[1];
  auto groups = groupsOf(*this, *in[2], a.rows());
  if (failed(groups))
    return failure();
  const int64_t n = a.cols(), k = b.cols();
  for (auto [e, rows] : llvm::enumerate(*groups))
    for (int64_t r = rows.first; r < rows.second; ++r)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < k; ++i)
          out[0].data[(e * n + j) * k + i] += a.data[r * n + j] * b.data[r * k + i];
  return success();
}

int64_t GroupedOuterOp::flops() {
  return productOf({2, elementsOf(getA()), build::shapeOf(getB())[1]});
}

/// Of a: b times the transpose of the gradient; of b: a times the gradient.
void GroupedOuterOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Location loc = getLoc();
  Value dc = build::cast(b, loc, g[0], build::typeOf(getA()).getElementType());
  grads[0] = GroupedLinearOp::create(b, loc, getB(), dc, getOffsets(), UnitAttr(), TypeAttr(),
                                     getComputeAttr());
  grads[1] = GroupedLinearOp::create(b, loc, getA(), dc, getOffsets(), b.getUnitAttr(), TypeAttr(),
                                     getComputeAttr());
}

} // namespace hydra
