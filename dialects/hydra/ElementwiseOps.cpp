// Elementwise operations, constants and casts.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Reference.h"
#include "dialects/hydra/RowForms.h"
#include "dialects/hydra/RowMath.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

//===-- constant, iota ----------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder &b, OperationState &state, RankedTensorType type, double value) {
  build(b, state, type, b.getF64FloatAttr(value), b.getI64ArrayAttr(type.getShape()),
        TypeAttr::get(type.getElementType()));
}

/// The type that `shape` and `dtype` attributes describe, once both are numbers.
static FailureOr<RankedTensorType> sourceType(Operation *op, ArrayAttr shape, TypeAttr dtype,
                                              Type defaultElement) {
  if (shape && hasExpr(shape))
    return op->emitOpError("has a shape that is not bound");
  if (shape && !isIntListOrExprs(shape))
    return op->emitOpError("has a shape that is not a list of integers");
  SmallVector<int64_t> dims = shape ? intList(shape) : SmallVector<int64_t>();
  if (std::string problem = checkShape(dims); !problem.empty())
    return op->emitOpError() << "shape " << problem;
  auto type = RankedTensorType::get(dims, dtype ? dtype.getValue() : defaultElement);
  if (std::string problem = checkTensorType(type); !problem.empty())
    return op->emitOpError() << "has " << problem;
  if (isEightBitFloat(type.getElementType()))
    return op->emitOpError() << "has elements of " << type.getElementType() << "; expected "
                             << kModelElements << " or i1";
  return type;
}

FailureOr<RankedTensorType> ConstantOp::boundType() {
  if (hasExpr(getValueAttr()))
    return emitOpError("has a value that is not bound");
  if (!isRealOrExpr(getValueAttr()))
    return emitOpError("has a value that is not a number");
  FailureOr<RankedTensorType> type =
      sourceType(*this, getShapeAttr(), getDtypeAttr(), Float32Type::get(getContext()));
  if (failed(type) || isNumberOf(type->getElementType(), getValue()))
    return type;
  return emitOpError() << "has the value " << numberText(getValue()) << ", which is no number of "
                       << type->getElementType();
}

LogicalResult ConstantOp::evaluate(ArrayRef<const RefTensor *>,
                                   MutableArrayRef<RefTensor> results) {
  llvm::fill(results[0].data, getValue());
  return success();
}

SmallVector<int64_t> ConstantOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getResult()));
}

void ConstantOp::emitRows(RowEmitter &e, ArrayRef<RowValue>, ArrayRef<unsigned>,
                          MutableArrayRef<RowValue> out) {
  out[0] = e.constant(getValue(), build::typeOf(getResult()).getElementType());
}

FailureOr<RankedTensorType> IotaOp::boundType() {
  auto type = sourceType(*this, getShapeAttr(), getDtypeAttr(), IntegerType::get(getContext(), 32));
  if (failed(type))
    return failure();
  if (hasExpr(getAxisAttr()) || !isIntOrExpr(getAxisAttr()))
    return emitOpError("has an axis that is not an integer");
  if (getAxis() < 0 || getAxis() >= type->getRank())
    return emitOpError() << "counts along axis " << getAxis() << " of a tensor with "
                         << type->getRank() << " dimensions";
  const int64_t last = type->getDimSize(getAxis()) - 1;
  if (!isNumberOf(type->getElementType(), static_cast<double>(last)) ||
      type->getElementType().isInteger(1))
    return emitOpError() << "counts to " << last << ", which is no number of "
                         << type->getElementType();
  return type;
}

LogicalResult IotaOp::evaluate(ArrayRef<const RefTensor *>, MutableArrayRef<RefTensor> results) {
  double *out = results[0].data.data();
  forEachIndex(results[0].shape, [&](ArrayRef<int64_t> i) { *out++ = i[getAxis()]; });
  return success();
}

SmallVector<int64_t> IotaOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getResult()));
}

void IotaOp::emitRows(RowEmitter &e, ArrayRef<RowValue>, ArrayRef<unsigned>,
                      MutableArrayRef<RowValue> out) {
  const RowDomain &domain = e.domain();
  unsigned rowRank = domain.rowShape.size(), axis = getAxis();
  RowForm form = *formOfShape(domain, build::shapeOf(getResult()));
  Type element = build::typeOf(getResult()).getElementType();
  if (form == RowForm::Row && axis >= rowRank) // a dimension of 1
    out[0] = e.constant(0.0, element);
  else
    out[0] = e.cast(e.index(form == RowForm::Column ? rowRank + axis : axis), element);
}

//===-- Inference and evaluation ------------------------------------------------------------===//

static LogicalResult inferUnary(TypeInference &infer, Value x, SmallVectorImpl<Type> &types) {
  types.push_back(x.getType());
  return infer.wantFloat(x, "operand");
}

static LogicalResult inferSameType(TypeInference &infer, Value a, Value b,
                                   SmallVectorImpl<Type> &types) {
  types.push_back(a.getType());
  return infer.wantSameType(a, "first operand", b, "second operand");
}

template <typename Op>
static LogicalResult inferBinary(TypeInference &infer, Value a, Value b,
                                 SmallVectorImpl<Type> &types) {
  if (std::is_same_v<Op, DivOp> && failed(infer.wantFloat(a, "first operand")))
    return failure();
  if (infer.element(a).isInteger(1))
    return infer.fail("operands hold truth values (i1); expected numbers");
  return inferSameType(infer, a, b, types);
}

template <typename F>
static LogicalResult map1(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out, F f) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].data[i] = f(in[0]->data[i]);
  return success();
}
template <typename F>
static LogicalResult map2(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out, F f) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].data[i] = f(in[0]->data[i], in[1]->data[i]);
  return success();
}

/// The same of two numbers of one type: whole ones wrap around as those of 32 bits do.
template <typename F>
static LogicalResult mapNumbers(Value result, ArrayRef<const RefTensor *> in,
                                MutableArrayRef<RefTensor> out, F f) {
  if (isa<FloatType>(build::typeOf(result).getElementType()))
    return map2(in, out, f);
  return map2(in, out, [&](double a, double b) -> double {
    return static_cast<int32_t>(f(static_cast<int64_t>(a), static_cast<int64_t>(b)));
  });
}

static double logistic(double x) {
  return x >= 0 ? 1.0 / (1.0 + std::exp(-x)) : std::exp(x) / (1.0 + std::exp(x));
}

static constexpr double kGeluScale = 0.7978845608028654; // sqrt(2/pi)
static constexpr double kGeluCubic = 0.044715;

double geluOf(double x) {
  // (1 + tanh u) / 2 is the logistic function of 2 u, which keeps small results exact.
  return x * logistic(2.0 * kGeluScale * (x + kGeluCubic * x * x * x));
}

/// An element of the result needs only the same element of each operand of its type.
static SmallVector<unsigned> sameTypeOperands(Operation *op) {
  SmallVector<unsigned> numbers;
  for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
    if (type == op->getResult(0).getType())
      numbers.push_back(i);
  return numbers;
}

#define ELEMENTWISE_OP(Op)                                                                         \
  SmallVector<unsigned> Op::overwritableOperands(unsigned) { return sameTypeOperands(*this); }     \
  OperandLayout Op::operandLayout(unsigned) { return rowStrided(); }                               \
  SmallVector<int64_t> Op::rowWiseShape() { return SmallVector<int64_t>(build::shapeOf(getY())); }

/// `formula` in float64, `rows` over the values of a group.
#define UNARY_OP(Op, formula, rows)                                                                \
  LogicalResult Op::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {   \
    return inferUnary(infer, op.getX(), types);                                                    \
  }                                                                                                \
  LogicalResult Op::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {     \
    return map1(in, out, [](double x) { return formula; });                                        \
  }                                                                                                \
  void Op::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,                      \
                    MutableArrayRef<RowValue> out) {                                               \
    RowTerm x{&e, in[0]};                                                                          \
    out[0] = rows;                                                                                 \
  }                                                                                                \
  ELEMENTWISE_OP(Op)

#define BINARY_OP(Op, formula, rows)                                                               \
  LogicalResult Op::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {   \
    return inferBinary<Op>(infer, op.getA(), op.getB(), types);                                    \
  }                                                                                                \
  LogicalResult Op::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {     \
    return mapNumbers(getY(), in, out, [](auto a, auto b) { return formula; });                    \
  }                                                                                                \
  void Op::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,                      \
                    MutableArrayRef<RowValue> out) {                                               \
    RowTerm a{&e, in[0]}, b{&e, in[1]};                                                            \
    out[0] = rows;                                                                                 \
  }                                                                                                \
  ELEMENTWISE_OP(Op)

UNARY_OP(NegOp, -x, -x)
UNARY_OP(ExpOp, std::exp(x), exp(x))
UNARY_OP(LogOp, std::log(x), apply(RowUnary::Log, x))
UNARY_OP(SqrtOp, std::sqrt(x), sqrt(x))
UNARY_OP(RsqrtOp, 1.0 / std::sqrt(x), rsqrt(x))
UNARY_OP(DetachOp, x, x)
UNARY_OP(SinOp, std::sin(x), apply(RowUnary::Sin, x))
UNARY_OP(CosOp, std::cos(x), apply(RowUnary::Cos, x))
UNARY_OP(TanhOp, std::tanh(x), tanh(x))
UNARY_OP(ErfOp, std::erf(x), apply(RowUnary::Erf, x))
UNARY_OP(SigmoidOp, logistic(x), sigmoid(x))
UNARY_OP(SiluOp, x *logistic(x), x *sigmoid(x))
UNARY_OP(GeluOp, geluOf(x), x *sigmoid((x + x * x * x * kGeluCubic) * (2.0 * kGeluScale)))

BINARY_OP(AddOp, a + b, a + b)
BINARY_OP(SubOp, a - b, a - b)
BINARY_OP(MulOp, a *b, a *b)
BINARY_OP(DivOp, a / b, a / b)
BINARY_OP(MaxOp, a >= b || a != a ? a : b, apply(RowBinary::Max, a, b))
BINARY_OP(MinOp, a <= b || a != a ? a : b, apply(RowBinary::Min, a, b))

ELEMENTWISE_OP(CompareOp)
ELEMENTWISE_OP(SelectOp)
ELEMENTWISE_OP(CastOp)

#undef UNARY_OP
#undef BINARY_OP
#undef ELEMENTWISE_OP

LogicalResult CompareOp::inferTypes(TypeInference &infer, Adaptor op,
                                    SmallVectorImpl<Type> &types) {
  if (!symbolizePredicate(op.getIs()))
    return infer.fail("unknown predicate '" + op.getIs() + "'; expected eq, ne, lt, le, gt or ge");
  types.push_back(infer.tensor(infer.shape(op.getA()), IntegerType::get(infer.context, 1)));
  return infer.wantSameType(op.getA(), "first operand", op.getB(), "second operand");
}

LogicalResult CompareOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  return map2(in, out, [is = getPredicate()](double a, double b) {
    switch (is) {
    case Predicate::eq:
      return a == b;
    case Predicate::ne:
      return a != b;
    case Predicate::lt:
      return a < b;
    case Predicate::le:
      return a <= b;
    case Predicate::gt:
      return a > b;
    case Predicate::ge:
      return a >= b;
    }
    llvm_unreachable("all predicates are above");
  });
}

void CompareOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                         MutableArrayRef<RowValue> out) {
  out[0] = e.compare(getPredicate(), in[0], in[1]);
}

LogicalResult SelectOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (!infer.element(op.getC()).isInteger(1))
    return infer.fail("condition does not hold truth values (i1)");
  if (failed(infer.wantShape(op.getC(), "condition", infer.shape(op.getA()))))
    return failure();
  return inferSameType(infer, op.getA(), op.getB(), types);
}

LogicalResult SelectOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].data[i] = in[in[0]->data[i] != 0.0 ? 1 : 2]->data[i];
  return success();
}

void SelectOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                        MutableArrayRef<RowValue> out) {
  out[0] = e.select(in[0], in[1], in[2]);
}

LogicalResult CastOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  Type to = op.getTo();
  if (isEightBitFloat(infer.element(op.getX())))
    return infer.fail("operand 0: floats of 8 bits are read by matmuls alone");
  if (isInt8(infer.element(op.getX())) && !isa<FloatType>(to))
    return infer.fail("cannot cast i8 to this element type; expected " + kModelFloats);
  if (!isModelElement(to))
    return infer.fail("cannot cast to this element type; expected " + kModelElements);
  types.push_back(infer.tensor(infer.shape(op.getX()), to));
  return success();
}

LogicalResult CastOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  if (isa<FloatType>(getTo()))
    return map1(in, out, [](double x) { return x; });
  // The nearest that there is: of 32 bits, 0 for what is no number.
  return map1(in, out, [](double x) -> double {
    constexpr double least = std::numeric_limits<int32_t>::min(),
                     most = std::numeric_limits<int32_t>::max();
    return std::isnan(x) ? 0.0 : std::clamp(std::trunc(x), least, most);
  });
}

void CastOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                      MutableArrayRef<RowValue> out) {
  out[0] = e.cast(in[0], getTo());
}

//===-- Derivatives -------------------------------------------------------------------------===//

void NegOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = NegOp::create(b, getLoc(), g[0]);
}
void ExpOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = MulOp::create(b, getLoc(), g[0], getY());
}
void LogOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = DivOp::create(b, getLoc(), g[0], getX());
}
void DetachOp::vjp(OpBuilder &, ValueRange, MutableArrayRef<Value>) {}
void SinOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = MulOp::create(b, getLoc(), g[0], CosOp::create(b, getLoc(), getX()));
}
void CosOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Value slope = NegOp::create(b, getLoc(), SinOp::create(b, getLoc(), getX()));
  grads[0] = MulOp::create(b, getLoc(), g[0], slope);
}
void SqrtOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Value half = build::scale(b, getLoc(), g[0], 0.5);
  grads[0] = DivOp::create(b, getLoc(), half, getY());
}
void RsqrtOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Value cube = MulOp::create(b, getLoc(), getY(), MulOp::create(b, getLoc(), getY(), getY()));
  grads[0] = MulOp::create(b, getLoc(), build::scale(b, getLoc(), g[0], -0.5), cube);
}
void TanhOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Value one = build::constant(b, getLoc(), getType(), 1.0);
  Value slope = SubOp::create(b, getLoc(), one, MulOp::create(b, getLoc(), getY(), getY()));
  grads[0] = MulOp::create(b, getLoc(), g[0], slope);
}
void ErfOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  // 2/sqrt(pi) e^(-x²)
  constexpr double kSlope = 1.1283791670955126;
  Value square = MulOp::create(b, getLoc(), getX(), getX());
  Value bell = ExpOp::create(b, getLoc(), NegOp::create(b, getLoc(), square));
  grads[0] = MulOp::create(b, getLoc(), build::scale(b, getLoc(), g[0], kSlope), bell);
}
void SigmoidOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Value one = build::constant(b, getLoc(), getType(), 1.0);
  Value slope = MulOp::create(b, getLoc(), getY(), SubOp::create(b, getLoc(), one, getY()));
  grads[0] = MulOp::create(b, getLoc(), g[0], slope);
}
void SiluOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  // s (1 + x (1 - s)) with s = sigmoid(x).
  Location loc = getLoc();
  Value one = build::constant(b, loc, getType(), 1.0);
  Value s = SigmoidOp::create(b, loc, getX());
  Value rest = MulOp::create(b, loc, getX(), SubOp::create(b, loc, one, s));
  Value slope = MulOp::create(b, loc, s, AddOp::create(b, loc, one, rest));
  grads[0] = MulOp::create(b, loc, g[0], slope);
}
void GeluOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  // With u = 2 k (x + c x³), s = sigmoid u: s + x s (1 - s) 2 k (1 + 3 c x²).
  Location loc = getLoc();
  Value x = getX(), one = build::constant(b, loc, getType(), 1.0);
  Value square = MulOp::create(b, loc, x, x);
  Value inner = AddOp::create(b, loc, one, build::scale(b, loc, square, kGeluCubic));
  Value u = build::scale(b, loc, MulOp::create(b, loc, x, inner), 2.0 * kGeluScale);
  Value s = SigmoidOp::create(b, loc, u);
  Value du = AddOp::create(b, loc, one, build::scale(b, loc, square, 3.0 * kGeluCubic));
  Value ds = MulOp::create(b, loc, s, SubOp::create(b, loc, one, s));
  Value right = MulOp::create(b, loc, build::scale(b, loc, x, 2.0 * kGeluScale),
                              MulOp::create(b, loc, ds, du));
  grads[0] = MulOp::create(b, loc, g[0], AddOp::create(b, loc, s, right));
}

void AddOp::vjp(OpBuilder &, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = grads[1] = g[0];
}
void SubOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = g[0];
  grads[1] = NegOp::create(b, getLoc(), g[0]);
}
void MulOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = MulOp::create(b, getLoc(), g[0], getB());
  grads[1] = MulOp::create(b, getLoc(), g[0], getA());
}
void DivOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = DivOp::create(b, getLoc(), g[0], getB());
  grads[1] = NegOp::create(b, getLoc(), MulOp::create(b, getLoc(), grads[0], getY()));
}

/// The operand that a comparison picks gets the gradient.
static void pickedVjp(OpBuilder &b, Location loc, Predicate predicate, Value x, Value y, Value g,
                      MutableArrayRef<Value> grads) {
  Value zero = build::constant(b, loc, g.getType(), 0.0);
  Value first = CompareOp::create(b, loc, x, y, predicate);
  grads[0] = SelectOp::create(b, loc, first, g, zero);
  grads[1] = SelectOp::create(b, loc, first, zero, g);
}
void MaxOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  pickedVjp(b, getLoc(), Predicate::ge, getA(), getB(), g[0], grads);
}
void MinOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  pickedVjp(b, getLoc(), Predicate::le, getA(), getB(), g[0], grads);
}
void SelectOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Value zero = build::constant(b, getLoc(), getType(), 0.0);
  grads[1] = SelectOp::create(b, getLoc(), getC(), g[0], zero);
  grads[2] = SelectOp::create(b, getLoc(), getC(), zero, g[0]);
}
/// Belongs to what it rounds. One of parameters, alone or joined, reads them all again.
RecomputeWhen CastOp::recomputeWhen() {
  Operation *rounded = getX().getDefiningOp();
  if (!rounded)
    return RecomputeWhen::Never;
  auto isParameter = [](Value value) { return value.getDefiningOp<UseOp>() != nullptr; };
  if (isa<UseOp>(rounded) ||
      (isa<ConcatOp>(rounded) && llvm::all_of(rounded->getOperands(), isParameter)))
    return RecomputeWhen::Copies;
  return isa<ConcatOp>(rounded) ? RecomputeWhen::Never : RecomputeWhen::Rowwise;
}

void CastOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = build::cast(b, getLoc(), g[0], build::typeOf(getX()).getElementType());
}

//===-- Folders: only what keeps every bit --------------------------------------------------===//

OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getX().getDefiningOp<NegOp>())
    return inner.getX();
  return {};
}
// Before binding an operand may still broadcast the other, and a constant be an expression.
OpFoldResult SubOp::fold(FoldAdaptor) {
  // x - (+0) is x for every x; 0 - x is not neg x when x is 0.
  if (isUnbound(getType()))
    return {};
  std::optional<double> b = build::constantValue(getB());
  return b && *b == 0.0 && !std::signbit(*b) ? OpFoldResult(getA()) : OpFoldResult();
}

bool MulOp::givesZero(llvm::function_ref<bool(unsigned)> isZero) { return isZero(0) || isZero(1); }

OpFoldResult MulOp::fold(FoldAdaptor) {
  if (isUnbound(getType()))
    return {};
  if (build::constantValue(getA()) == 1.0)
    return getB();
  if (build::constantValue(getB()) == 1.0)
    return getA();
  return {};
}
OpFoldResult DivOp::fold(FoldAdaptor) {
  if (isUnbound(getType()))
    return {};
  return build::constantValue(getB()) == 1.0 ? OpFoldResult(getA()) : OpFoldResult();
}
OpFoldResult CastOp::fold(FoldAdaptor) {
  return !isUnbound(getType()) && getX().getType() == getType() ? OpFoldResult(getX())
                                                                : OpFoldResult();
}

} // namespace hydra
