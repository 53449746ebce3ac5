// Row-wise operations with a reduction inside: norms, softmax, rotary embedding.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
#include "dialects/hydra/RowMath.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

/// The form that a letter stands for: (t)ile, (r)ow value, (c)olumn value.
static RowForm formOfLetter(char letter) {
  return letter == 't' ? RowForm::Tile : letter == 'r' ? RowForm::Row : RowForm::Column;
}

/// `perElement`: operations of one row element; multiplied by the elements of the row operand.
/// `forms`: a letter for each operand, then for each result; column results are sums over rows.
#define ROW_OP(Op, perElement, cost, precision, inner, operandForms, resultForms)                  \
  int64_t Op::flops() {                                                                            \
    return perElement * build::typeOf(getOperation()->getOperand(0)).getNumElements();             \
  }                                                                                                \
  OpClass Op::costClass() { return OpClass::cost; }                                                \
  Precision Op::precisionClass() { return precision; }                                             \
  bool Op::takesRounded(unsigned operand) { return operandForm(operand) != RowForm::Row; }         \
  SmallVector<int64_t> Op::rowWiseShape() {                                                        \
    return SmallVector<int64_t>(build::shapeOf(getOperation()->getOperand(0)));                    \
  }                                                                                                \
  std::optional<unsigned> Op::rowDimensions() { return rowWiseShape().size() - inner; }            \
  RowForm Op::operandForm(unsigned operand) { return formOfLetter(operandForms[operand]); }        \
  RowForm Op::resultForm(unsigned result) { return formOfLetter(resultForms[result]); }            \
  bool Op::sumsOverRows(unsigned result) { return resultForm(result) == RowForm::Column; }

ROW_OP(RmsNormOp, 4, norm, Precision::Full, 1, "tc", "tr")
ROW_OP(RmsNormGradOp, 8, norm, Precision::Full, 1, "ttcr", "tc")
ROW_OP(LayerNormOp, 7, norm, Precision::Full, 1, "tcc", "trr")
ROW_OP(LayerNormGradOp, 11, norm, Precision::Full, 1, "ttcrr", "tcc")
ROW_OP(SoftmaxOp, 4, softmax, Precision::Full, 1, "t", "t")
ROW_OP(SoftmaxGradOp, 4, softmax, Precision::Full, 1, "tt", "t")
ROW_OP(RopeOp, 3, elementwise, Precision::Follow, 2, "tr", "t")
#undef ROW_OP

/// Their first result may take the place of an operand of its type.
#define OVERWRITES(Op)                                                                             \
  SmallVector<unsigned> Op::overwritableOperands(unsigned result) {                                \
    SmallVector<unsigned> numbers;                                                                 \
    for (auto [i, type] : llvm::enumerate(getOperation()->getOperandTypes()))                      \
      if (result == 0 && type == getOperation()->getResult(0).getType())                           \
        numbers.push_back(i);                                                                      \
    return numbers;                                                                                \
  }

OVERWRITES(RmsNormOp)
OVERWRITES(RmsNormGradOp)
OVERWRITES(LayerNormOp)
OVERWRITES(LayerNormGradOp)
OVERWRITES(SoftmaxOp)
OVERWRITES(SoftmaxGradOp)
#undef OVERWRITES

/// Neighbours are a pair, which chunks of a row have whole. Halves of a head may be far apart.
SmallVector<unsigned> RopeOp::overwritableOperands(unsigned) {
  return getHalfSplit() ? SmallVector<unsigned>() : SmallVector<unsigned>{0};
}

// Only the rotation reads other columns than its own.
bool RmsNormOp::needsOuterOperand(unsigned) { return false; }
bool RmsNormGradOp::needsOuterOperand(unsigned) { return false; }
bool LayerNormOp::needsOuterOperand(unsigned) { return false; }
bool LayerNormGradOp::needsOuterOperand(unsigned) { return false; }
bool SoftmaxOp::needsOuterOperand(unsigned) { return false; }
bool SoftmaxGradOp::needsOuterOperand(unsigned) { return false; }
bool RopeOp::needsOuterOperand(unsigned operand) { return operand == 0; }

/// `x [..., D]` with D at least 1, and `w [D]` of the same element type.
static LogicalResult wantRowsAndScale(TypeInference &infer, Value x, Value w, StringRef what) {
  if (failed(infer.wantFloat(x, "input")) || failed(infer.wantFloat(w, what)))
    return failure();
  if (infer.shape(x).empty())
    return infer.fail("input is a scalar; expected [..., D]");
  return infer.wantShape(w, what, {infer.shape(x).back()});
}

static RankedTensorType rowStatistic(TypeInference &infer, Value x) {
  return infer.tensor(infer.shape(x).drop_back(), infer.f32());
}

/// The forward operation again, with its statistics; replaces `op`.
template <typename Op, typename... Extra>
static Operation *replaceSaving(OpBuilder &b, Op op, Extra... extra) {
  if (op.getSaving())
    return op;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  Operation *saving = Op::create(b, op.getLoc(), extra..., op.getEpsAttr(), b.getUnitAttr());
  op->getResult(0).replaceAllUsesWith(saving->getResult(0));
  op->erase();
  return saving;
}

//===-- rms_norm ----------------------------------------------------------------------------===//

LogicalResult RmsNormOp::inferTypes(TypeInference &infer, Adaptor op,
                                    SmallVectorImpl<Type> &types) {
  if (failed(wantRowsAndScale(infer, op.getX(), op.getW(), "weight")) ||
      failed(infer.wantFinite(op.getEps(), "eps", 0.0)))
    return failure();
  types.push_back(op.getX().getType());
  if (op.getSaving())
    types.push_back(rowStatistic(infer, op.getX()));
  return success();
}

LogicalResult RmsNormOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  int64_t d = in[0]->cols();
  for (int64_t t = 0; t < in[0]->rows(); ++t) {
    const double *x = in[0]->data.data() + t * d;
    double square = 0.0;
    for (int64_t i = 0; i < d; ++i)
      square += x[i] * x[i];
    double r = 1.0 / std::sqrt(square / d + getEps());
    for (int64_t i = 0; i < d; ++i)
      out[0].data[t * d + i] = x[i] * r * in[1]->data[i];
    if (getSaving())
      out[1].data[t] = r;
  }
  return success();
}

void RmsNormOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                         MutableArrayRef<RowValue> out) {
  RowTerm x{&e, in[0]}, w{&e, in[1]};
  RowTerm r = rsqrt(mean(x * x) + getEps());
  out[0] = x * r * w;
  if (getSaving())
    out[1] = r;
}

Operation *RmsNormOp::saveForBackward(OpBuilder &b) {
  return replaceSaving(b, *this, getX(), getW());
}

void RmsNormOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  auto grad = RmsNormGradOp::create(b, getLoc(), g[0], getX(), getW(), getR());
  grads[0] = grad.getDx();
  grads[1] = grad.getDw();
}

LogicalResult RmsNormGradOp::inferTypes(TypeInference &infer, Adaptor op,
                                        SmallVectorImpl<Type> &types) {
  if (failed(wantRowsAndScale(infer, op.getX(), op.getW(), "weight")) ||
      failed(infer.wantSameType(op.getDy(), "gradient", op.getX(), "input")) ||
      failed(infer.wantExact(op.getR(), "row statistic", infer.shape(op.getX()).drop_back())))
    return failure();
  types.append({op.getX().getType(), op.getW().getType()});
  return success();
}

LogicalResult RmsNormGradOp::evaluate(ArrayRef<const RefTensor *> in,
                                      MutableArrayRef<RefTensor> out) {
  int64_t d = in[1]->cols();
  const double *w = in[2]->data.data();
  for (int64_t t = 0; t < in[1]->rows(); ++t) {
    const double *dy = in[0]->data.data() + t * d, *x = in[1]->data.data() + t * d;
    double r = in[3]->data[t], dot = 0.0;
    for (int64_t i = 0; i < d; ++i)
      dot += dy[i] * w[i] * x[i] * r;
    for (int64_t i = 0; i < d; ++i) {
      double n = x[i] * r;
      out[0].data[t * d + i] = r * (dy[i] * w[i] - n * dot / d);
      out[1].data[i] += dy[i] * n;
    }
  }
  return success();
}

void RmsNormGradOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                             MutableArrayRef<RowValue> out) {
  RowTerm dy{&e, in[0]}, x{&e, in[1]}, w{&e, in[2]}, r{&e, in[3]};
  RowTerm n = x * r, h = dy * w;
  out[0] = r * (h - n * mean(h * n));
  out[1] = sumRows(dy * n, RowForm::Tile);
}

//===-- layer_norm --------------------------------------------------------------------------===//

LogicalResult LayerNormOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  if (failed(wantRowsAndScale(infer, op.getX(), op.getW(), "weight")) ||
      failed(infer.wantSameType(op.getB(), "bias", op.getW(), "weight")) ||
      failed(infer.wantFinite(op.getEps(), "eps", 0.0)))
    return failure();
  types.push_back(op.getX().getType());
  if (op.getSaving())
    types.append(2, rowStatistic(infer, op.getX()));
  return success();
}

LogicalResult LayerNormOp::evaluate(ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out) {
  int64_t d = in[0]->cols();
  for (int64_t t = 0; t < in[0]->rows(); ++t) {
    const double *x = in[0]->data.data() + t * d;
    double mean = 0.0, var = 0.0;
    for (int64_t i = 0; i < d; ++i)
      mean += x[i] / d;
    for (int64_t i = 0; i < d; ++i)
      var += (x[i] - mean) * (x[i] - mean) / d;
    double r = 1.0 / std::sqrt(var + getEps());
    for (int64_t i = 0; i < d; ++i)
      out[0].data[t * d + i] = (x[i] - mean) * r * in[1]->data[i] + in[2]->data[i];
    if (getSaving()) {
      out[1].data[t] = mean;
      out[2].data[t] = r;
    }
  }
  return success();
}

void LayerNormOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                           MutableArrayRef<RowValue> out) {
  RowTerm x{&e, in[0]}, w{&e, in[1]}, b{&e, in[2]};
  RowTerm average = mean(x), centred = x - average;
  RowTerm r = rsqrt(mean(centred * centred) + getEps());
  out[0] = centred * r * w + b;
  if (getSaving()) {
    out[1] = average;
    out[2] = r;
  }
}

Operation *LayerNormOp::saveForBackward(OpBuilder &b) {
  return replaceSaving(b, *this, getX(), getW(), getB());
}

void LayerNormOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  auto grad =
      LayerNormGradOp::create(b, getLoc(), g[0], getX(), getW(), getSaved()[0], getSaved()[1]);
  grads[0] = grad.getDx();
  grads[1] = grad.getDw();
  grads[2] = grad.getDb();
}

LogicalResult LayerNormGradOp::inferTypes(TypeInference &infer, Adaptor op,
                                          SmallVectorImpl<Type> &types) {
  ArrayRef<int64_t> rows = infer.shape(op.getX()).drop_back(infer.shape(op.getX()).empty() ? 0 : 1);
  if (failed(wantRowsAndScale(infer, op.getX(), op.getW(), "weight")) ||
      failed(infer.wantSameType(op.getDy(), "gradient", op.getX(), "input")) ||
      failed(infer.wantExact(op.getMean(), "mean", rows)) ||
      failed(infer.wantExact(op.getR(), "row statistic", rows)))
    return failure();
  types.append({op.getX().getType(), op.getW().getType(), op.getW().getType()});
  return success();
}

LogicalResult LayerNormGradOp::evaluate(ArrayRef<const RefTensor *> in,
                                        MutableArrayRef<RefTensor> out) {
  int64_t d = in[1]->cols();
  const double *w = in[2]->data.data();
  for (int64_t t = 0; t < in[1]->rows(); ++t) {
    const double *dy = in[0]->data.data() + t * d, *x = in[1]->data.data() + t * d;
    double mean = in[3]->data[t], r = in[4]->data[t], hMean = 0.0, hnMean = 0.0;
    for (int64_t i = 0; i < d; ++i) {
      hMean += dy[i] * w[i] / d;
      hnMean += dy[i] * w[i] * (x[i] - mean) * r / d;
    }
    for (int64_t i = 0; i < d; ++i) {
      double n = (x[i] - mean) * r;
      out[0].data[t * d + i] = r * (dy[i] * w[i] - hMean - n * hnMean);
      out[1].data[i] += dy[i] * n;
      out[2].data[i] += dy[i];
    }
  }
  return success();
}

void LayerNormGradOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                               MutableArrayRef<RowValue> out) {
  RowTerm dy{&e, in[0]}, x{&e, in[1]}, w{&e, in[2]}, average{&e, in[3]}, r{&e, in[4]};
  RowTerm n = (x - average) * r, h = dy * w;
  out[0] = r * (h - mean(h) - n * mean(h * n));
  out[1] = sumRows(dy * n, RowForm::Tile);
  out[2] = sumRows(dy, RowForm::Tile);
}

//===-- softmax -----------------------------------------------------------------------------===//

LogicalResult SoftmaxOp::inferTypes(TypeInference &infer, Adaptor op,
                                    SmallVectorImpl<Type> &types) {
  if (infer.shape(op.getX()).empty())
    return infer.fail("input is a scalar; expected [..., D]");
  types.push_back(op.getX().getType());
  return infer.wantFloat(op.getX(), "input");
}

LogicalResult SoftmaxOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  int64_t d = in[0]->cols();
  for (int64_t t = 0; t < in[0]->rows(); ++t) {
    const double *x = in[0]->data.data() + t * d;
    double *y = out[0].data.data() + t * d;
    double top = *std::max_element(x, x + d), sum = 0.0;
    if (top == -std::numeric_limits<double>::infinity())
      continue;
    for (int64_t i = 0; i < d; ++i)
      sum += y[i] = std::exp(x[i] - top);
    for (int64_t i = 0; i < d; ++i)
      y[i] /= sum;
  }
  return success();
}

void SoftmaxOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                         MutableArrayRef<RowValue> out) {
  // A finite maximum keeps rows of minus infinities apart from NaN. A row with any other element
  // sums to at least 1, because its maximum adds e^0.
  RowTerm x{&e, in[0]};
  RowTerm top = max(max(x), std::numeric_limits<float>::lowest());
  RowTerm p = exp(x - top);
  out[0] = p * (1.0 / max(sum(p), 1.0));
}

void SoftmaxOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = SoftmaxGradOp::create(b, getLoc(), g[0], getY());
}

LogicalResult SoftmaxGradOp::inferTypes(TypeInference &infer, Adaptor op,
                                        SmallVectorImpl<Type> &types) {
  if (infer.shape(op.getY()).empty())
    return infer.fail("input is a scalar; expected [..., D]");
  types.push_back(op.getY().getType());
  return infer.wantSameType(op.getDy(), "gradient", op.getY(), "softmax");
}

LogicalResult SoftmaxGradOp::evaluate(ArrayRef<const RefTensor *> in,
                                      MutableArrayRef<RefTensor> out) {
  int64_t d = in[0]->cols();
  for (int64_t t = 0; t < in[0]->rows(); ++t) {
    const double *dy = in[0]->data.data() + t * d, *y = in[1]->data.data() + t * d;
    double dot = 0.0;
    for (int64_t i = 0; i < d; ++i)
      dot += dy[i] * y[i];
    for (int64_t i = 0; i < d; ++i)
      out[0].data[t * d + i] = y[i] * (dy[i] - dot);
  }
  return success();
}

void SoftmaxGradOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                             MutableArrayRef<RowValue> out) {
  RowTerm dy{&e, in[0]}, y{&e, in[1]};
  out[0] = y * (dy - sum(dy * y));
}

//===-- rope --------------------------------------------------------------------------------===//

/// Whole numbers below this are exact in f32.
static constexpr int64_t kMostPositions = 1 << 24;
/// A given position as it is taken: from 0 to the last one.
static double knownPosition(double given) {
  return given > 0 ? std::min<double>(given, kMostPositions - 1) : 0;
}

LogicalResult RopeOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (failed(infer.wantFloat(op.getX(), "input")) || failed(infer.wantRank(op.getX(), "input", 4)))
    return failure();
  int64_t hd = infer.shape(op.getX())[3];
  if (hd % 2)
    return infer.fail("head width " + Twine(hd) + " is odd; expected pairs of channels");
  if (failed(infer.wantPositive(op.getBase(), "base")))
    return failure();
  if (op.getPeriodAttr() && intValue(op.getPeriodAttr()) < 1)
    return infer.fail("period must be positive");
  int64_t length = infer.shape(op.getX())[1];
  if (Value positions = op.getPositions()) {
    if (!infer.element(positions).isF32())
      return infer.fail("positions are not f32");
    if (failed(infer.wantShape(positions, "positions", infer.shape(op.getX()).take_front(2))))
      return failure();
    length = kMostPositions;
  }
  // The last pair of channels turns fastest when the base is below 1.
  int64_t last = (op.getPeriodAttr() ? std::min(length, intValue(op.getPeriodAttr())) : length) - 1;
  double largest = last * std::max(1.0, std::pow(op.getBase(), 2.0 / hd - 1.0));
  constexpr double kExact = 1 << 30; // as of sin and cos
  if (!(largest < kExact))
    return infer.fail("turns by up to " + numberText(largest) +
                      " radians; expected less than 2^30, below which angles are exact");
  types.push_back(op.getX().getType());
  return success();
}

LogicalResult RopeOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const RefTensor &x = *in[0];
  int64_t hd = x.cols(), pairs = hd / 2, heads = x.shape[2], length = x.shape[1];
  int64_t period = getPeriodAttr() ? intValue(getPeriodAttr()) : length;
  if (getPositions() && !getPeriodAttr())
    period = kMostPositions;
  for (int64_t row = 0; row < x.rows(); ++row) {
    int64_t position = row / heads % length;
    if (in.size() > 1)
      position = static_cast<int64_t>(knownPosition(in[1]->data[row / heads]));
    position %= period;
    for (int64_t i = 0; i < pairs; ++i) {
      double angle = position * std::pow(getBase(), -2.0 * i / hd) * (getInverse() ? -1.0 : 1.0);
      int64_t first = row * hd + (getHalfSplit() ? i : 2 * i);
      int64_t second = first + (getHalfSplit() ? pairs : 1);
      double a = x.data[first], b = x.data[second];
      out[0].data[first] = a * std::cos(angle) - b * std::sin(angle);
      out[0].data[second] = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  return success();
}

void RopeOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned> outer,
                      MutableArrayRef<RowValue> out) {
  Rotation rotation;
  rotation.base = getBase();
  rotation.halfSplit = getHalfSplit();
  rotation.inverse = getInverse();
  rotation.length = build::shapeOf(getX())[1];
  const int64_t period = getPeriodAttr() ? intValue(getPeriodAttr()) : 0;
  if (!getPositions()) {
    rotation.period = period < rotation.length ? period : 0; // a longer one never ends
    out[0] = e.rotate(outer[0], rotation);
    return;
  }
  rotation.period = period;
  const RowTerm position{&e, in[1]}, first = position.constant(0),
                                     last = position.constant(kMostPositions - 1);
  const RowValue from = e.select(e.compare(Predicate::gt, position, first), position, first);
  out[0] = e.rotate(outer[0], rotation, e.select(e.compare(Predicate::lt, from, last), from, last));
}

/// Its operand stays in memory beside the values of the same fused projection.
RecomputeWhen RopeOp::recomputeWhen() { return RecomputeWhen::Always; }

void RopeOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = RopeOp::create(b, getLoc(), g[0], getPositions(), getBaseAttr(), getHalfSplitAttr(),
                            getInverse() ? UnitAttr() : b.getUnitAttr(), getPeriodAttr());
}

} // namespace hydra
