// Muon: momentum whose singular values are made equal by a Newton–Schulz iteration.
#include "dialects/hydra/optimizers/Directed.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace hydra {

namespace {

/// Of the quintic a x + b x³ + c x⁵, which takes singular values in (0, 1] near 1 (Jordan et al.).
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kLeastNorm = 1e-7;
constexpr double kMostSteps = 20;

bool flag(DictionaryAttr settings, StringRef name) {
  return cast<BoolAttr>(settings.get(name)).getValue();
}

/// The matrix with singular values near 1 and the singular vectors of `u`.
Value orthogonalized(OpBuilder &b, Location loc, Value u, int64_t steps) {
  const ArrayRef<int64_t> shape = build::shapeOf(u);
  const bool tall = shape[0] > shape[1];
  Value norm = GlobalNormOp::create(b, loc, u);
  norm = MaxOp::create(b, loc, norm, build::constant(b, loc, norm.getType(), kLeastNorm));
  Value x = DivOp::create(b, loc, u, build::broadcast(b, loc, norm, shape));
  const UnitAttr yes = b.getUnitAttr(), no;
  for (int64_t i = 0; i < steps; ++i) {
    // On the smaller side: Xᵀ X instead of X Xᵀ, both are symmetric.
    Value gram = MatmulOp::create(b, loc, x, x, tall ? yes : no, tall ? no : yes);
    Value square = MatmulOp::create(b, loc, gram, gram, no, no);
    Value polynomial =
        AddOp::create(b, loc, build::scale(b, loc, gram, kB), build::scale(b, loc, square, kC));
    Value change = tall ? MatmulOp::create(b, loc, x, polynomial, no, no)
                        : MatmulOp::create(b, loc, polynomial, x, no, no);
    x = AddOp::create(b, loc, build::scale(b, loc, x, kA), change);
  }
  return x;
}

} // namespace

//===-- As an optimizer ---------------------------------------------------------------------===//

SmallVector<OptimizerSetting> MuonOp::settings() {
  using Kind = OptimizerSetting::Kind;
  return {{"momentum", Kind::Number, 0.95}, {"wd", Kind::Number, 0.1},
          {"steps", Kind::Number, 5.0},     kRateScale,
          {"nesterov", Kind::Flag, 1.0},    {"match_adamw", Kind::Flag, 0.0}};
}

std::string MuonOp::checkSettings(DictionaryAttr settings) {
  if (std::string problem = checkFraction(settings, "momentum"); !problem.empty())
    return problem;
  if (std::string problem = checkNumber(
          settings, "steps",
          [](double v) { return v >= 1.0 && v <= kMostSteps && v == std::floor(v); },
          "an integer from 1 to 20");
      !problem.empty())
    return problem;
  return checkNotNegative(settings, {"wd", "lr_scale"});
}

std::string MuonOp::checkParameter(RankedTensorType parameter) {
  return parameter.getRank() == 2 ? "" : "muon updates matrices";
}

bool MuonOp::worksByElement() { return false; }

SmallVector<OptimizerState> MuonOp::states(RankedTensorType parameter, DictionaryAttr) {
  return {{"momentum",
           RankedTensorType::get(parameter.getShape(), Float32Type::get(parameter.getContext()))}};
}

SmallVector<Value> MuonOp::buildUpdate(OpBuilder &b, Location loc, const OptimizerInputs &in) {
  const double momentum = realValue(in.settings.get("momentum"));
  Value g = directed::gradientOf(b, loc, in);
  auto mixed = [&](Value m) -> Value {
    Value way = SubOp::create(b, loc, g, m); // of ranks wants the whole gradient, not their parts
    return AddOp::create(b, loc, m, build::scale(b, loc, way, 1.0 - momentum));
  };
  Value m = mixed(in.states[0]);
  Value u = flag(in.settings, "nesterov") ? mixed(m) : m;
  Value o = orthogonalized(b, loc, u, static_cast<int64_t>(realValue(in.settings.get("steps"))));
  const auto rows = static_cast<double>(build::shapeOf(u)[0]),
             columns = static_cast<double>(build::shapeOf(u)[1]);
  constexpr double kUsual = 0.2; // root mean square of AdamW's updates
  const double ratio = flag(in.settings, "match_adamw")
                           ? kUsual * std::sqrt(std::max(rows, columns))
                           : std::sqrt(std::max(1.0, rows / columns));
  Value pace = build::scale(b, loc, in.rate, ratio);
  Value p = MuonOp::create(b, loc, in.parameter, o, pace, in.rate, in.settings.get("wd"),
                           in.settings.get("lr_scale"));
  return {p, m};
}

//===-- As an operation ---------------------------------------------------------------------===//

LogicalResult MuonOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  return directed::inferTypes<MuonOp>(infer, op, types);
}
LogicalResult MuonOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  directed::evaluate(*this, in, out);
  return success();
}
int64_t MuonOp::flops() { return 4 * build::typeOf(getP()).getNumElements(); }
OpClass MuonOp::costClass() { return OpClass::optimizer; }
Precision MuonOp::precisionClass() { return Precision::Exact; }
bool MuonOp::takesRounded(unsigned operand) { return operand == directed::kParameter; }
SmallVector<unsigned> MuonOp::overwritableOperands(unsigned) { return {directed::kParameter}; }
SmallVector<int64_t> MuonOp::rowWiseShape() { return SmallVector<int64_t>(build::shapeOf(getP())); }
RowForm MuonOp::operandForm(unsigned operand) {
  return operand <= directed::kDirection ? RowForm::Tile : RowForm::Scalar;
}
void MuonOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                      MutableArrayRef<RowValue> out) {
  directed::emitRows(*this, e, in, out);
}

} // namespace hydra
