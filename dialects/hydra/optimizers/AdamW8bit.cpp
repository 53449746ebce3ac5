// AdamW with moments of 8 bits.
//
// What is kept is rounded to f8E4M3FN; a step is computed from moments in f32. How far off it is:
//
// * sqrt(v) is kept instead of v. From the largest number of the format to the smallest is a factor
//   of 2^17.8; squared, 2^35.6. v itself would be 0 below 2^-17.8 of the largest of its block,
//   where m, which goes with sqrt(v), is far from 0.
// * What would be rounded to 0 becomes the smallest number: the divisor of a step is too large
//   there, never wrongly 0. m rounded up from less is at most the smallest number as well, so their
//   ratio is at most twice that of the largest of the block, which the betas bound.
// * Neighbours are at most an eighth of their size apart. Rounded to nearest, a moment that changes
//   by less than half of that in a step would never change: sqrt(v) falls by 0.05% with beta2 =
//   0.999. So a number is rounded up in as many of 4096 steps as its place between its neighbours
//   says, which over time is its mean (`dither`); the same in every run.
// * Scales are powers of two: the numbers of a scale, but for the smallest, are those of another,
//   and what does not change is not rounded anew.
//
// For normal gradients whose sizes differ within a block by a factor of e^1.5 (one standard
// deviation), after 3000 steps, as root mean squares: sqrt(v) is off by 8%, m by 6% and a step by
// 9% with beta2 = 0.95; by 12%, 6% and 14% with 0.999, also if half of the sizes fall to a tenth on
// the way. Then steps of moments rounded to nearest, with the largest magnitude as scale, are off
// by 146%.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/QuantizationScale.h"
#include "dialects/hydra/optimizers/BiasCorrection.h"
#include "dialects/hydra/optimizers/Settings.h"

#include <cmath>

using namespace mlir;

namespace hydra {

namespace {

enum Operand : unsigned {
  kParameter,
  kFirst,
  kFirstScale,
  kRoot,
  kRootScale,
  kGradient,
  kRate,
  kStep,
  kGradientScale
};

/// Elements with a scale of their own: as many as this, and no fewer than that.
constexpr int64_t kMostInBlock = 256, kLeastInBlock = 64;
/// Below it a parameter has moments of f32, unless a group says otherwise.
constexpr double kMinSize = 4096.0;

Type momentType(MLIRContext *context) { return Float8E4M3FNType::get(context); }

/// How many elements of a parameter a block has; nullopt: it has moments of f32.
std::optional<int64_t> blockSize(RankedTensorType parameter, DictionaryAttr settings) {
  const int64_t elements = parameter.getNumElements();
  if (static_cast<double>(elements) >= realValue(settings.get("min_size")))
    for (int64_t size = kMostInBlock; size >= kLeastInBlock; --size)
      if (elements % size == 0)
        return size;
  return std::nullopt;
}

//===-- Rounding ----------------------------------------------------------------------------===//

/// Bits behind the point, the smallest number and the smallest with all of these bits.
struct Grid {
  int bits = support::formatOf(support::DType::E4M3).mantissa;
  double smallest = support::smallestNumber(support::DType::E4M3);
  double leastNormal = std::ldexp(smallest, bits);
  double spacing = std::ldexp(1.0, -bits); ///< of numbers, relative to the power of two below
};

/// Of the numbers that dither and its phases are: all below 2^24, so that f32 has them exactly.
constexpr double kPhases = 4096.0;
constexpr double kPerStep = 2531.0;   ///< nearest to the golden section of the phases, odd
constexpr double kPerColumn = 1597.0; ///< so that columns differ

/// Above which place between two numbers the upper one is taken: even over steps and columns.
double dither(double step, int64_t column) {
  const double phase =
      kPerStep * std::fmod(step, kPhases) + kPerColumn * static_cast<double>(column);
  return (std::fmod(phase, kPhases) + 0.5) / kPhases;
}

/// The number of the format above or below y >= 0.
double rounded(double y, double dither) {
  const Grid grid;
  const double power = y > 0.0 && std::isfinite(y) ? std::ldexp(1.0, std::ilogb(y)) : y;
  const double spacing = std::max(power, grid.leastNormal) * grid.spacing;
  const double below = std::trunc(y / spacing);
  return (below + (y / spacing - below > dither ? 1.0 : 0.0)) * spacing;
}

/// Numbers from 0, without what they have behind the point.
RowTerm truncated(RowTerm x) {
  RowEmitter &e = *x.emitter;
  MLIRContext *context = e.elementType(x).getContext();
  return {&e, e.cast(e.cast(x, IntegerType::get(context, 32)), Float32Type::get(context))};
}
RowTerm modulo(RowTerm x, double n) { return x - truncated(x * (1.0 / n)) * n; }

RowTerm select(Predicate is, RowTerm x, RowTerm y, RowTerm yes, RowTerm no) {
  RowEmitter &e = *x.emitter;
  return {&e, e.select(e.compare(is, x, y), yes, no)};
}

RowTerm dither(RowTerm step) {
  RowEmitter &e = *step.emitter;
  const Type f32 = Float32Type::get(e.elementType(step).getContext());
  const RowTerm column{&e, e.cast(e.index(e.domain().rowShape.size()), f32)};
  const RowTerm phase = modulo(step, kPhases) * kPerStep + column * kPerColumn;
  return (modulo(phase, kPhases) + 0.5) * (1.0 / kPhases);
}

RowTerm rounded(RowTerm y, RowTerm dither) {
  const Grid grid;
  const RowTerm spacing = max(apply(RowUnary::PowerOfTwo, y), grid.leastNormal) * grid.spacing;
  const RowTerm place = y * (1.0 / spacing), below = truncated(place);
  const RowTerm up = select(Predicate::gt, place - below, dither, y.constant(1.0), y.constant(0.0));
  return (below + up) * spacing;
}

} // namespace

//===-- As an optimizer ---------------------------------------------------------------------===//

SmallVector<OptimizerSetting> AdamW8bitOp::settings() {
  SmallVector<OptimizerSetting> settings = AdamWOp::settings();
  settings.push_back({"min_size", OptimizerSetting::Kind::Number, kMinSize});
  return settings;
}

std::string AdamW8bitOp::checkSettings(DictionaryAttr settings) {
  std::string problem = AdamWOp::checkSettings(settings);
  return problem.empty() ? checkNotNegative(settings, {"min_size"}) : problem;
}

bool AdamW8bitOp::worksByElement() { return false; }

SmallVector<OptimizerState> AdamW8bitOp::states(RankedTensorType parameter,
                                                DictionaryAttr settings) {
  const std::optional<int64_t> size = blockSize(parameter, settings);
  if (!size)
    return AdamWOp::states(parameter, settings);
  MLIRContext *context = parameter.getContext();
  const int64_t blocks = parameter.getNumElements() / *size;
  const auto moment = RankedTensorType::get({blocks, *size}, momentType(context));
  const auto scale = RankedTensorType::get({blocks, 1}, Float32Type::get(context));
  return {{"m8", moment}, {"m8_scale", scale}, {"r8", moment}, {"r8_scale", scale}};
}

SmallVector<Value> AdamW8bitOp::buildUpdate(OpBuilder &b, Location loc, const OptimizerInputs &in) {
  const RankedTensorType parameter = build::typeOf(in.parameter);
  if (!blockSize(parameter, in.settings))
    return AdamWOp::buildUpdate(b, loc, in);
  const ArrayRef<int64_t> blocks = build::shapeOf(in.states[0]);
  Value p = build::reshape(b, loc, in.parameter, blocks);
  Value g = build::reshape(b, loc, in.gradient, blocks);
  auto update = AdamW8bitOp::create(
      b, loc, p, in.states[0], in.states[1], in.states[2], in.states[3], g, in.rate,
      in.updateCount(), in.scale, in.settings.get("beta1"), in.settings.get("beta2"),
      in.settings.get("eps"), in.settings.get("wd"), in.settings.get("lr_scale"));
  SmallVector<Value> fresh(update->getResults());
  fresh.front() = build::reshape(b, loc, fresh.front(), parameter.getShape());
  return fresh;
}

//===-- As an operation ---------------------------------------------------------------------===//

static LogicalResult wantMoment(TypeInference &infer, Value moment, Value scale, StringRef name,
                                ArrayRef<int64_t> shape) {
  if (infer.element(moment) != momentType(infer.context))
    return infer.fail(name + Twine(" has elements of another type; expected f8E4M3FN"));
  const std::string ofScale = (name + " scale").str();
  return failure(failed(infer.wantShape(moment, name, shape)) ||
                 failed(infer.wantExact(scale, ofScale, {shape[0], 1})));
}

LogicalResult AdamW8bitOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  if (failed(infer.wantFloat(op.getP(), "parameter")) ||
      failed(infer.wantRank(op.getP(), "parameter", 2)))
    return failure();
  const ArrayRef<int64_t> shape = infer.shape(op.getP());
  if (shape[1] > kMostInBlock)
    return infer.fail("has blocks of " + Twine(shape[1]) + " elements; expected at most " +
                      Twine(kMostInBlock));
  if (failed(wantMoment(infer, op.getM(), op.getMScale(), "first moment", shape)) ||
      failed(wantMoment(infer, op.getR(), op.getRScale(), "root of the second moment", shape)) ||
      failed(infer.wantShape(op.getG(), "gradient", shape)) ||
      failed(infer.wantFloat(op.getG(), "gradient")) ||
      failed(infer.wantExact(op.getLr(), "learning rate", {})) ||
      failed(infer.wantShape(op.getStep(), "step", {})) ||
      failed(infer.wantInteger(op.getStep(), "step")))
    return failure();
  if (op.getScale() && failed(infer.wantExact(op.getScale(), "scale", {})))
    return failure();
  if (std::string problem = AdamWOp::checkSettings(
          cast<DictionaryAttr>(getPropertiesAsAttr(infer.context, op.getProperties())));
      !problem.empty())
    return infer.fail(problem);
  types.append({op.getP().getType(), op.getM().getType(), op.getMScale().getType(),
                op.getR().getType(), op.getRScale().getType()});
  return success();
}

LogicalResult AdamW8bitOp::evaluate(ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out) {
  const double rate = realValue(getLrScaleAttr()) * in[kRate]->data[0], t = in[kStep]->data[0];
  const double scale = in.size() > kGradientScale ? in[kGradientScale]->data[0] : 1.0;
  const double c1 = 1.0 - std::pow(getBeta1(), t), c2 = 1.0 - std::pow(getBeta2(), t);
  const int64_t size = in[kParameter]->cols();
  const Type format = momentType(getContext());
  std::vector<double> first(size), root(size);
  for (int64_t block = 0; block < in[kParameter]->rows(); ++block) {
    double mostFirst = 0.0, mostRoot = 0.0;
    for (int64_t column = 0; column < size; ++column) {
      const int64_t i = block * size + column;
      const double g = scale * in[kGradient]->data[i], p = in[kParameter]->data[i];
      const double r = in[kRoot]->data[i] * in[kRootScale]->data[block];
      const double m = in[kFirst]->data[i] * in[kFirstScale]->data[block];
      first[column] = getBeta1() * m + (1.0 - getBeta1()) * g;
      root[column] = std::sqrt(getBeta2() * r * r + (1.0 - getBeta2()) * g * g);
      mostFirst = std::max(mostFirst, std::abs(first[column]));
      mostRoot = std::max(mostRoot, root[column]);
      out[kParameter].data[i] =
          p - rate * getWd() * p -
          rate * (first[column] / c1) / (root[column] / std::sqrt(c2) + getEps());
    }
    const double firstScale = quantizationScale(mostFirst, format),
                 rootScale = quantizationScale(mostRoot, format);
    out[kFirstScale].data[block] = firstScale;
    out[kRootScale].data[block] = rootScale;
    for (int64_t column = 0; column < size; ++column) {
      const int64_t i = block * size + column;
      const double u = dither(t, column);
      out[kFirst].data[i] =
          std::copysign(rounded(std::abs(first[column]) / firstScale, u), first[column]);
      out[kRoot].data[i] = std::max(rounded(root[column] / rootScale, u), Grid().smallest);
    }
  }
  return success();
}

int64_t AdamW8bitOp::flops() { return 50 * build::typeOf(getP()).getNumElements(); }
OpClass AdamW8bitOp::costClass() { return OpClass::optimizer; }
Precision AdamW8bitOp::precisionClass() { return Precision::Exact; }
/// All but scales and numbers of the step.
bool AdamW8bitOp::takesRounded(unsigned operand) { return operandForm(operand) == RowForm::Tile; }
SmallVector<unsigned> AdamW8bitOp::overwritableOperands(unsigned result) { return {result}; }

SmallVector<int64_t> AdamW8bitOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getP()));
}
std::optional<unsigned> AdamW8bitOp::rowDimensions() { return 1; }
RowForm AdamW8bitOp::operandForm(unsigned operand) {
  if (operand == kFirstScale || operand == kRootScale)
    return RowForm::Row;
  return operand <= kGradient ? RowForm::Tile : RowForm::Scalar;
}
/// Results stand in the order of operands.
RowForm AdamW8bitOp::resultForm(unsigned result) { return operandForm(result); }

void AdamW8bitOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                           MutableArrayRef<RowValue> out) {
  const auto term = [&](unsigned operand) { return RowTerm{&e, in[operand]}; };
  const Type f32 = Float32Type::get(getContext()), format = momentType(getContext());
  const RowTerm p = term(kParameter), t{&e, e.cast(in[kStep], f32)};
  RowTerm g = term(kGradient);
  if (in.size() > kGradientScale)
    g = term(kGradientScale) * g;
  const RowTerm rate = term(kRate) * realValue(getLrScaleAttr());
  const RowTerm m = term(kFirst) * term(kFirstScale), r = term(kRoot) * term(kRootScale);
  const RowTerm first = m * getBeta1() + g * (1.0 - getBeta1());
  const RowTerm root = sqrt(r * r * getBeta2() + g * g * (1.0 - getBeta2()));
  // As in adamw, the corrections are of the tensor.
  const RowTerm pace = rate / biasCorrection(getBeta1(), t);
  const RowTerm unbias = sqrt(1.0 / biasCorrection(getBeta2(), t));
  const RowTerm decayed = p - p * (rate * getWd());
  out[kParameter] = decayed - pace * first / (root * unbias + getEps());

  const RowTerm zero = p.constant(0.0), u = dither(t);
  const RowTerm size = apply(RowBinary::Max, first, -first);
  const RowTerm firstScale = quantizationScale(max(size), format),
                rootScale = quantizationScale(max(root), format);
  const RowTerm magnitude = rounded(size * (1.0 / firstScale), u);
  out[kFirst] = e.cast(select(Predicate::lt, first, zero, -magnitude, magnitude), format);
  out[kFirstScale] = firstScale;
  out[kRoot] = e.cast(max(rounded(root * (1.0 / rootScale), u), Grid().smallest), format);
  out[kRootScale] = rootScale;
}

} // namespace hydra
