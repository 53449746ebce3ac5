// Lion.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowMath.h"
#include "dialects/hydra/optimizers/Settings.h"

using namespace mlir;

namespace hydra {

//===-- As an optimizer ---------------------------------------------------------------------===//

SmallVector<OptimizerSetting> LionOp::settings() {
  using Kind = OptimizerSetting::Kind;
  return {{"beta1", Kind::Number, 0.9},
          {"beta2", Kind::Number, 0.99},
          {"wd", Kind::Number, 0.0},
          kRateScale};
}

std::string LionOp::checkSettings(DictionaryAttr settings) {
  for (StringRef beta : {"beta1", "beta2"})
    if (std::string problem = checkFraction(settings, beta); !problem.empty())
      return problem;
  return checkNotNegative(settings, {"wd", "lr_scale"});
}

bool LionOp::worksByElement() { return true; }

SmallVector<OptimizerState> LionOp::states(RankedTensorType parameter, DictionaryAttr) {
  return {
      {"m", RankedTensorType::get(parameter.getShape(), Float32Type::get(parameter.getContext()))}};
}

SmallVector<Value> LionOp::buildUpdate(OpBuilder &b, Location loc, const OptimizerInputs &in) {
  auto update = LionOp::create(b, loc, in.parameter, in.states[0], in.gradient, in.rate, in.scale,
                               in.settings.get("beta1"), in.settings.get("beta2"),
                               in.settings.get("wd"), in.settings.get("lr_scale"));
  return SmallVector<Value>(update->getResults());
}

//===-- As an operation ---------------------------------------------------------------------===//

LogicalResult LionOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (failed(infer.wantFloat(op.getP(), "parameter")) ||
      failed(infer.wantShape(op.getM(), "momentum", infer.shape(op.getP()))) ||
      failed(infer.wantShape(op.getG(), "gradient", infer.shape(op.getP()))) ||
      failed(infer.wantFloat(op.getM(), "momentum")) ||
      failed(infer.wantFloat(op.getG(), "gradient")) ||
      failed(infer.wantExact(op.getLr(), "learning rate", {})))
    return failure();
  if (op.getScale() && failed(infer.wantExact(op.getScale(), "scale", {})))
    return failure();
  if (std::string problem = checkSettings(
          cast<DictionaryAttr>(getPropertiesAsAttr(infer.context, op.getProperties())));
      !problem.empty())
    return infer.fail(problem);
  types.append({op.getP().getType(), op.getM().getType()});
  return success();
}

LogicalResult LionOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const double rate = realValue(getLrScaleAttr()) * in[3]->data[0];
  const double scale = in.size() > 4 ? in[4]->data[0] : 1.0;
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    const double p = in[0]->data[i], m = in[1]->data[i], g = scale * in[2]->data[i];
    const double direction = getBeta1() * m + (1.0 - getBeta1()) * g;
    const double sign = direction > 0.0 ? 1.0 : direction < 0.0 ? -1.0 : 0.0;
    out[0].data[i] = p - rate * (getWd() * p + sign);
    out[1].data[i] = getBeta2() * m + (1.0 - getBeta2()) * g;
  }
  return success();
}

int64_t LionOp::flops() { return 11 * build::typeOf(getP()).getNumElements(); }
OpClass LionOp::costClass() { return OpClass::optimizer; }
Precision LionOp::precisionClass() { return Precision::Exact; }
bool LionOp::takesRounded(unsigned operand) { return operand < 3; } // not numbers of the step
SmallVector<unsigned> LionOp::overwritableOperands(unsigned result) { return {result}; }

SmallVector<int64_t> LionOp::rowWiseShape() { return SmallVector<int64_t>(build::shapeOf(getP())); }
RowForm LionOp::operandForm(unsigned operand) {
  return operand < 3 ? RowForm::Tile : RowForm::Scalar;
}

void LionOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                      MutableArrayRef<RowValue> out) {
  RowTerm p{&e, in[0]}, m{&e, in[1]}, g{&e, in[2]}, lr{&e, in[3]};
  if (in.size() > 4)
    g = RowTerm{&e, in[4]} * g;
  const RowTerm rate = lr * realValue(getLrScaleAttr());
  const RowTerm direction = m * getBeta1() + g * (1.0 - getBeta1());
  const RowTerm zero = p.constant(0.0);
  const auto choose = [&](Predicate is, double value, RowTerm other) {
    return RowTerm{&e, e.select(e.compare(is, direction, zero), p.constant(value), other)};
  };
  const RowTerm sign = choose(Predicate::gt, 1.0, choose(Predicate::lt, -1.0, zero));
  out[0] = p - rate * (p * getWd() + sign);
  out[1] = m * getBeta2() + g * (1.0 - getBeta2());
}

} // namespace hydra
