// AdamW.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/optimizers/BiasCorrection.h"
#include "dialects/hydra/optimizers/Settings.h"

#include <cmath>

using namespace mlir;

namespace hydra {

//===-- As an optimizer ---------------------------------------------------------------------===//

SmallVector<OptimizerSetting> AdamWOp::settings() {
  return {{"beta1"}, {"beta2"}, {"eps"}, {"wd"}, kRateScale};
}

std::string AdamWOp::checkSettings(DictionaryAttr settings) {
  for (StringRef beta : {"beta1", "beta2"})
    if (std::string problem = checkFraction(settings, beta); !problem.empty())
      return problem;
  return checkNotNegative(settings, {"eps", "wd", "lr_scale"});
}

bool AdamWOp::worksByElement() { return true; }

SmallVector<OptimizerState> AdamWOp::states(RankedTensorType parameter, DictionaryAttr) {
  auto moment =
      RankedTensorType::get(parameter.getShape(), Float32Type::get(parameter.getContext()));
  return {{"m", moment}, {"v", moment}};
}

SmallVector<Value> AdamWOp::buildUpdate(OpBuilder &b, Location loc, const OptimizerInputs &in) {
  auto update = AdamWOp::create(b, loc, in.parameter, in.states[0], in.states[1], in.gradient,
                                in.rate, in.updateCount(), in.scale, in.settings.get("beta1"),
                                in.settings.get("beta2"), in.settings.get("eps"),
                                in.settings.get("wd"), in.settings.get("lr_scale"));
  return SmallVector<Value>(update->getResults());
}

//===-- As an operation ---------------------------------------------------------------------===//

LogicalResult AdamWOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (failed(infer.wantFloat(op.getP(), "parameter")) ||
      failed(infer.wantShape(op.getM(), "first moment", infer.shape(op.getP()))) ||
      failed(infer.wantShape(op.getV(), "second moment", infer.shape(op.getP()))) ||
      failed(infer.wantShape(op.getG(), "gradient", infer.shape(op.getP()))) ||
      failed(infer.wantFloat(op.getM(), "first moment")) ||
      failed(infer.wantFloat(op.getV(), "second moment")) ||
      failed(infer.wantFloat(op.getG(), "gradient")) ||
      failed(infer.wantExact(op.getLr(), "learning rate", {})) ||
      failed(infer.wantShape(op.getStep(), "step", {})) ||
      failed(infer.wantInteger(op.getStep(), "step")))
    return failure();
  if (op.getScale() && failed(infer.wantExact(op.getScale(), "scale", {})))
    return failure();
  if (std::string problem = checkSettings(
          cast<DictionaryAttr>(getPropertiesAsAttr(infer.context, op.getProperties())));
      !problem.empty())
    return infer.fail(problem);
  types.append({op.getP().getType(), op.getM().getType(), op.getV().getType()});
  return success();
}

LogicalResult AdamWOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  double rate = realValue(getLrScaleAttr()) * in[4]->data[0], t = in[5]->data[0];
  double scale = in.size() > 6 ? in[6]->data[0] : 1.0;
  double c1 = 1.0 - std::pow(getBeta1(), t), c2 = 1.0 - std::pow(getBeta2(), t);
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    double g = scale * in[3]->data[i], p = in[0]->data[i];
    double m = getBeta1() * in[1]->data[i] + (1.0 - getBeta1()) * g;
    double v = getBeta2() * in[2]->data[i] + (1.0 - getBeta2()) * g * g;
    p -= rate * getWd() * p;
    out[0].data[i] = p - rate * (m / c1) / (std::sqrt(v / c2) + getEps());
    out[1].data[i] = m;
    out[2].data[i] = v;
  }
  return success();
}

int64_t AdamWOp::flops() { return 16 * build::typeOf(getP()).getNumElements(); }
OpClass AdamWOp::costClass() { return OpClass::optimizer; }
Precision AdamWOp::precisionClass() { return Precision::Exact; }
bool AdamWOp::takesRounded(unsigned operand) { return operand < 4; } // not numbers of the step
SmallVector<unsigned> AdamWOp::overwritableOperands(unsigned result) { return {result}; }

SmallVector<int64_t> AdamWOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getP()));
}
RowForm AdamWOp::operandForm(unsigned operand) {
  return operand < 4 ? RowForm::Tile : RowForm::Scalar;
}

void AdamWOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                       MutableArrayRef<RowValue> out) {
  RowTerm p{&e, in[0]}, m{&e, in[1]}, v{&e, in[2]}, g{&e, in[3]}, lr{&e, in[4]};
  RowTerm t{&e, e.cast(in[5], Float32Type::get(getContext()))};
  if (in.size() > 6)
    g = RowTerm{&e, in[6]} * g;
  RowTerm rate = lr * realValue(getLrScaleAttr());
  RowTerm m1 = m * getBeta1() + g * (1.0 - getBeta1());
  RowTerm v1 = v * getBeta2() + g * g * (1.0 - getBeta2());
  // The divisions by the corrections are two for the tensor instead of two for each element.
  RowTerm pace = rate / biasCorrection(getBeta1(), t);
  RowTerm unbias = 1.0 / biasCorrection(getBeta2(), t);
  RowTerm decayed = p - p * (rate * getWd());
  out[0] = decayed - pace * m1 / (sqrt(v1 * unbias) + getEps());
  out[1] = m1;
  out[2] = v1;
}

} // namespace hydra
