// Stochastic gradient descent.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowMath.h"
#include "dialects/hydra/optimizers/Settings.h"

using namespace mlir;

namespace hydra {

//===-- As an optimizer ---------------------------------------------------------------------===//

SmallVector<OptimizerSetting> SgdOp::settings() {
  using Kind = OptimizerSetting::Kind;
  return {{"momentum", Kind::Number, 0.0},
          {"wd", Kind::Number, 0.0},
          kRateScale,
          {"nesterov", Kind::Flag, 0.0}};
}

/// Whether a group keeps a buffer of what the steps before did.
static bool hasMomentum(DictionaryAttr settings) {
  return realValue(settings.get("momentum")) != 0.0;
}

std::string SgdOp::checkSettings(DictionaryAttr settings) {
  if (std::string problem = checkFraction(settings, "momentum"); !problem.empty())
    return problem;
  auto momentum = settings.get("momentum"), nesterov = settings.get("nesterov");
  bool looksAhead = isa_and_nonnull<UnitAttr>(nesterov) ||
                    (isa_and_nonnull<BoolAttr>(nesterov) && cast<BoolAttr>(nesterov).getValue());
  if (looksAhead && (!momentum || (!isa<ExprAttr>(momentum) && realValue(momentum) == 0.0)))
    return "nesterov needs momentum; expected a momentum above 0";
  return checkNotNegative(settings, {"wd", "lr_scale"});
}

bool SgdOp::worksByElement() { return true; }

SmallVector<OptimizerState> SgdOp::states(RankedTensorType parameter, DictionaryAttr settings) {
  if (!hasMomentum(settings))
    return {};
  return {{"momentum",
           RankedTensorType::get(parameter.getShape(), Float32Type::get(parameter.getContext()))}};
}

SmallVector<Value> SgdOp::buildUpdate(OpBuilder &b, Location loc, const OptimizerInputs &in) {
  SmallVector<Value> inputs{in.parameter};
  llvm::append_range(inputs, in.states);
  inputs.append({in.gradient, in.rate});
  if (in.scale)
    inputs.push_back(in.scale);
  auto update = SgdOp::create(
      b, loc, inputs, hasMomentum(in.settings) ? in.settings.get("momentum") : Attribute(),
      in.settings.get("wd"), in.settings.get("lr_scale"),
      cast<BoolAttr>(in.settings.get("nesterov")).getValue() ? b.getUnitAttr() : UnitAttr());
  return SmallVector<Value>(update->getResults());
}

//===-- As an operation ---------------------------------------------------------------------===//

/// Operands p, b with momentum, g, lr, and maybe scale: where the ones behind b are.
static unsigned gradientOf(bool momentum) { return momentum ? 2 : 1; }

LogicalResult SgdOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  const bool momentum = static_cast<bool>(op.getMomentumAttr());
  const unsigned g = gradientOf(momentum), least = g + 2;
  ValueRange in = op.getInputs();
  if (in.size() < least || in.size() > least + 1)
    return infer.fail("has " + Twine(in.size()) + " operands; expected " + Twine(least) + " or " +
                      Twine(least + 1));
  if (failed(infer.wantFloat(in[0], "parameter")) ||
      (momentum && (failed(infer.wantShape(in[1], "momentum", infer.shape(in[0]))) ||
                    failed(infer.wantFloat(in[1], "momentum")))) ||
      failed(infer.wantShape(in[g], "gradient", infer.shape(in[0]))) ||
      failed(infer.wantFloat(in[g], "gradient")) ||
      failed(infer.wantExact(in[g + 1], "learning rate", {})) ||
      (in.size() > least && failed(infer.wantExact(in[least], "scale", {}))))
    return failure();
  if (std::string problem = checkSettings(
          cast<DictionaryAttr>(getPropertiesAsAttr(infer.context, op.getProperties())));
      !problem.empty())
    return infer.fail(problem);
  types.push_back(in[0].getType());
  if (momentum)
    types.push_back(in[1].getType());
  return success();
}

LogicalResult SgdOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const bool keeps = static_cast<bool>(getMomentumAttr());
  const double momentum = keeps ? realValue(getMomentumAttr()) : 0.0;
  const unsigned g = gradientOf(keeps);
  const double rate = realValue(getLrScaleAttr()) * in[g + 1]->data[0];
  const double scale = in.size() > g + 2 ? in[g + 2]->data[0] : 1.0;
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    const double p = in[0]->data[i];
    const double slope = scale * in[g]->data[i] + getWd() * p;
    const double b = keeps ? momentum * in[1]->data[i] + slope : slope;
    out[0].data[i] = p - rate * (getNesterov() ? slope + momentum * b : b);
    if (keeps)
      out[1].data[i] = b;
  }
  return success();
}

int64_t SgdOp::flops() { return 8 * build::typeOf(getP()).getNumElements(); }
OpClass SgdOp::costClass() { return OpClass::optimizer; }
Precision SgdOp::precisionClass() { return Precision::Exact; }
bool SgdOp::takesRounded(unsigned operand) { // not numbers of the step
  return operand <= gradientOf(static_cast<bool>(getMomentumAttr()));
}
SmallVector<unsigned> SgdOp::overwritableOperands(unsigned result) { return {result}; }

SmallVector<int64_t> SgdOp::rowWiseShape() { return SmallVector<int64_t>(build::shapeOf(getP())); }
RowForm SgdOp::operandForm(unsigned operand) {
  return takesRounded(operand) ? RowForm::Tile : RowForm::Scalar;
}

void SgdOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                     MutableArrayRef<RowValue> out) {
  const bool keeps = static_cast<bool>(getMomentumAttr());
  const unsigned at = gradientOf(keeps);
  RowTerm p{&e, in[0]}, g{&e, in[at]}, lr{&e, in[at + 1]};
  if (in.size() > at + 2)
    g = RowTerm{&e, in[at + 2]} * g;
  const RowTerm rate = lr * realValue(getLrScaleAttr());
  RowTerm slope = g + p * getWd(), step = slope;
  if (keeps) {
    const double momentum = realValue(getMomentumAttr());
    const RowTerm b = RowTerm{&e, in[1]} * momentum + slope;
    step = getNesterov() ? slope + b * momentum : b;
    out[1] = b;
  }
  out[0] = p - rate * step;
}

} // namespace hydra
