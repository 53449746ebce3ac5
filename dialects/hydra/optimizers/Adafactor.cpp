// Adafactor: second moments of rows and columns instead of elements.
#include "dialects/hydra/optimizers/Directed.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

namespace {

/// Whether a parameter has moments of its rows and columns.
bool isFactored(ArrayRef<int64_t> shape) { return shape.size() >= 2; }

/// The dimension of a shape that is left out, counted from the last.
SmallVector<int64_t> without(ArrayRef<int64_t> shape, size_t fromLast) {
  SmallVector<int64_t> rest(shape);
  rest.erase(rest.end() - 1 - static_cast<ptrdiff_t>(fromLast));
  return rest;
}

/// The same numbers, repeated along a dimension counted from the last.
Value repeated(OpBuilder &b, Location loc, Value x, ArrayRef<int64_t> shape, size_t fromLast) {
  SmallVector<int64_t> kept(shape);
  kept[shape.size() - 1 - fromLast] = 1;
  return build::broadcast(b, loc, build::reshape(b, loc, x, kept), shape);
}

Value meanOf(OpBuilder &b, Location loc, Value x, int64_t axis) {
  const auto count = static_cast<double>(build::shapeOf(x)[axis]);
  return build::scale(b, loc, build::sum(b, loc, x, {axis}), 1.0 / count);
}

Value atLeast(OpBuilder &b, Location loc, Value x, double least) {
  return MaxOp::create(b, loc, x, build::constant(b, loc, x.getType(), least));
}

/// A lower bound of what is divided by, which must not be 0 in f32, as the square of the paper's
/// eps1, 1e-30, would be.
double normalFloat(double least) {
  return std::max<double>(least, std::numeric_limits<float>::min());
}

/// Root mean square: `[]`.
Value rmsOf(OpBuilder &b, Location loc, Value x) {
  const auto count = static_cast<double>(build::typeOf(x).getNumElements());
  return build::scale(b, loc, GlobalNormOp::create(b, loc, x), 1.0 / std::sqrt(count));
}

} // namespace

//===-- As an optimizer ---------------------------------------------------------------------===//

SmallVector<OptimizerSetting> AdafactorOp::settings() {
  using Kind = OptimizerSetting::Kind;
  constexpr double kLeast = std::numeric_limits<float>::epsilon();
  return {{"decay", Kind::Number, 0.8}, {"eps1", Kind::Number, kLeast},
          {"eps2", Kind::Number, 1e-3}, {"threshold", Kind::Number, 1.0},
          {"wd", Kind::Number, 0.0},    kRateScale};
}

std::string AdafactorOp::checkSettings(DictionaryAttr settings) {
  const auto positive = [](double v) { return v > 0.0 && std::isfinite(static_cast<float>(v)); };
  for (StringRef name : {"eps1", "threshold"})
    if (std::string problem = checkNumber(settings, name, positive, "a finite number above 0");
        !problem.empty())
      return problem;
  return checkNotNegative(settings, {"decay", "eps2", "wd", "lr_scale"});
}

std::string AdafactorOp::checkParameter(RankedTensorType) { return ""; }

bool AdafactorOp::worksByElement() { return false; }

SmallVector<OptimizerState> AdafactorOp::states(RankedTensorType parameter, DictionaryAttr) {
  const ArrayRef<int64_t> shape = parameter.getShape();
  const Type f32 = Float32Type::get(parameter.getContext());
  if (!isFactored(shape))
    return {{"v", RankedTensorType::get(shape, f32)}};
  return {{"r", RankedTensorType::get(without(shape, 0), f32)},
          {"c", RankedTensorType::get(without(shape, 1), f32)}};
}

SmallVector<Value> AdafactorOp::buildUpdate(OpBuilder &b, Location loc, const OptimizerInputs &in) {
  const auto number = [&](StringRef name) { return realValue(in.settings.get(name)); };
  Value g = directed::gradientOf(b, loc, in);
  const SmallVector<int64_t> shape(build::shapeOf(g));
  const auto rank = static_cast<int64_t>(shape.size());
  Value t = build::cast(b, loc, in.updateCount(), b.getF32Type());
  Value share =
      ExpOp::create(b, loc, build::scale(b, loc, LogOp::create(b, loc, t), -number("decay")));
  Value square = MulOp::create(b, loc, g, g), v;
  SmallVector<Value> moments;
  if (isFactored(shape)) {
    Value r = directed::blend(b, loc, in.states[0], meanOf(b, loc, square, rank - 1), share);
    Value c = directed::blend(b, loc, in.states[1], meanOf(b, loc, square, rank - 2), share);
    moments = {r, c};
    Value mean = atLeast(b, loc, meanOf(b, loc, r, rank - 2), normalFloat(number("eps1")));
    Value rows = DivOp::create(b, loc, r, repeated(b, loc, mean, build::shapeOf(r), 0));
    v = MulOp::create(b, loc, repeated(b, loc, rows, shape, 0), repeated(b, loc, c, shape, 1));
  } else {
    v = directed::blend(b, loc, in.states[0], square, share);
    moments = {v};
  }
  const double least = normalFloat(number("eps1") * number("eps1"));
  Value u = MulOp::create(b, loc, g, RsqrtOp::create(b, loc, atLeast(b, loc, v, least)));
  Value size = rmsOf(b, loc, build::cast(b, loc, in.parameter, b.getF32Type()));
  Value rate = MinOp::create(b, loc, in.rate, RsqrtOp::create(b, loc, t));
  Value pace = MulOp::create(b, loc, atLeast(b, loc, size, number("eps2")), rate);
  Value excess = build::scale(b, loc, rmsOf(b, loc, u), 1.0 / number("threshold"));
  pace = DivOp::create(b, loc, pace, atLeast(b, loc, excess, 1.0));
  SmallVector<Value> fresh{AdafactorOp::create(b, loc, in.parameter, u, pace, in.rate,
                                               in.settings.get("wd"), in.settings.get("lr_scale"))};
  llvm::append_range(fresh, moments);
  return fresh;
}

//===-- As an operation ---------------------------------------------------------------------===//

LogicalResult AdafactorOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  return directed::inferTypes<AdafactorOp>(infer, op, types);
}
LogicalResult AdafactorOp::evaluate(ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out) {
  directed::evaluate(*this, in, out);
  return success();
}
int64_t AdafactorOp::flops() { return 4 * build::typeOf(getP()).getNumElements(); }
OpClass AdafactorOp::costClass() { return OpClass::optimizer; }
Precision AdafactorOp::precisionClass() { return Precision::Exact; }
bool AdafactorOp::takesRounded(unsigned operand) { return operand == directed::kParameter; }
SmallVector<unsigned> AdafactorOp::overwritableOperands(unsigned) { return {directed::kParameter}; }
SmallVector<int64_t> AdafactorOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getP()));
}
RowForm AdafactorOp::operandForm(unsigned operand) {
  return operand <= directed::kDirection ? RowForm::Tile : RowForm::Scalar;
}
void AdafactorOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                           MutableArrayRef<RowValue> out) {
  directed::emitRows(*this, e, in, out);
}

} // namespace hydra
