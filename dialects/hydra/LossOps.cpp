// Cross entropy over logits, and fused with the output projection.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Reference.h"
#include "dialects/hydra/RowLoss.h"

#include <cmath>

using namespace mlir;

namespace hydra {

static constexpr double kIgnored = -100.0;

static LogicalResult wantLabels(TypeInference &infer, Value rows, Value labels) {
  if (failed(infer.wantFloat(rows, "input")) || failed(infer.wantInteger(labels, "labels")))
    return failure();
  if (infer.shape(rows).empty())
    return infer.fail("input is a scalar; expected [..., V]");
  return infer.wantShape(labels, "labels", infer.shape(rows).drop_back());
}

/// What a loss divides by, if it is given.
static LogicalResult wantCount(TypeInference &infer, Value count) {
  return count ? infer.wantExact(count, "count", {}) : success();
}

namespace {

/// Labels with the number that the loss divides by: the rows that count, unless it is given;
/// `check` reports the first label out of range.
struct Labels {
  const RefTensor &tensor;
  double count = 0;

  Labels(const RefTensor &labels, const RefTensor *given) : tensor(labels) {
    for (double l : labels.data)
      count += l != kIgnored;
    if (given)
      count = given->data[0];
  }
  /// The mean of which this is the sum; 0 where nothing counts.
  double mean(double sum) const { return count ? sum / count : 0.0; }
  LogicalResult check(Operation *op, int64_t classes) const {
    for (auto [i, l] : llvm::enumerate(tensor.data))
      if (l != kIgnored && !(l >= 0 && l < classes))
        return op->emitOpError() << "label " << static_cast<int64_t>(l) << " at position " << i
                                 << " is not in [0, " << classes << ") or -100";
    return success();
  }
  bool ignored(int64_t t) const { return tensor.data[t] == kIgnored; }
  int64_t operator[](int64_t t) const { return static_cast<int64_t>(tensor.data[t]); }
};

double logSumExp(const double *z, int64_t n) {
  double top = *std::max_element(z, z + n), sum = 0.0;
  for (int64_t i = 0; i < n; ++i)
    sum += std::exp(z[i] - top);
  return top + std::log(sum);
}

} // namespace

OpClass CrossEntropyOp::costClass() { return OpClass::loss; }
OpClass CrossEntropyGradOp::costClass() { return OpClass::loss; }
OpClass LinearCrossEntropyOp::costClass() { return OpClass::loss; }
Precision CrossEntropyOp::precisionClass() { return Precision::Exact; }
Precision CrossEntropyGradOp::precisionClass() { return Precision::Exact; }
Precision LinearCrossEntropyOp::precisionClass() {
  return getCompute() ? Precision::Full : Precision::Matmul;
}

bool CrossEntropyOp::takesRounded(unsigned operand) { return operand < 2; }
bool CrossEntropyGradOp::takesRounded(unsigned operand) { return operand == 1; }
bool LinearCrossEntropyOp::takesRounded(unsigned operand) { return !getCompute() && operand < 3; }
Type LinearCrossEntropyOp::multipliedIn(unsigned operand) {
  return formatOfFactor(operand, getCompute());
}

bool LinearCrossEntropyOp::multiplyIn(Type format) {
  setCompute(format);
  return true;
}
void LinearCrossEntropyOp::allowReducedReduction() { setReducedReduction(true); }
void LinearCrossEntropyOp::roundLogits() { setRoundedLogits(true); }

std::optional<IdRange> CrossEntropyOp::idRange(unsigned operand) {
  return operand == 1 ? std::optional(IdRange{build::shapeOf(getLogits()).back(), true})
                      : std::nullopt;
}
std::optional<IdRange> CrossEntropyGradOp::idRange(unsigned operand) {
  return operand == 2 ? std::optional(IdRange{build::shapeOf(getLogits()).back(), true})
                      : std::nullopt;
}
std::optional<IdRange> LinearCrossEntropyOp::idRange(unsigned operand) {
  return operand == 2 ? std::optional(IdRange{build::shapeOf(getW())[0], true}) : std::nullopt;
}

//===-- cross_entropy -----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::inferTypes(TypeInference &infer, Adaptor op,
                                         SmallVectorImpl<Type> &types) {
  if (failed(wantLabels(infer, op.getLogits(), op.getLabels())) ||
      failed(wantCount(infer, op.getCount())))
    return failure();
  types.push_back(infer.tensor({}, infer.f32()));
  if (op.getSaving())
    types.push_back(infer.tensor(infer.shape(op.getLabels()), infer.f32()));
  return success();
}

LogicalResult CrossEntropyOp::evaluate(ArrayRef<const RefTensor *> in,
                                       MutableArrayRef<RefTensor> out) {
  Labels labels(*in[1], in.size() > 2 ? in[2] : nullptr);
  int64_t n = in[0]->cols();
  if (failed(labels.check(*this, n)))
    return failure();
  double sum = 0.0;
  for (int64_t t = 0; t < in[0]->rows(); ++t) {
    const double *z = in[0]->data.data() + t * n;
    double lse = logSumExp(z, n);
    if (!labels.ignored(t))
      sum += lse - z[labels[t]];
    if (getSaving())
      out[1].data[t] = lse;
  }
  out[0].data[0] = labels.mean(sum);
  return success();
}

/// Rows of logits with their labels.
static RowLoss rowLoss(OpBuilder &b, Location loc, Value logits, Value labels) {
  Value z = build::cast(b, loc, build::flattenRows(b, loc, logits), b.getF32Type());
  return {b, loc, z, build::reshape(b, loc, labels, {build::shapeOf(z)[0]})};
}

SmallVector<Value> CrossEntropyOp::buildRowWiseForm(OpBuilder &b) {
  Location loc = getLoc();
  RowLoss rows = rowLoss(b, loc, getLogits(), getLabels());
  Value lse = rows.logSumExp();
  Value share = RowLoss::shareOfRow(b, loc, rows.labels, getCount());
  SmallVector<Value> results{
      MulOp::create(b, loc, build::sum(b, loc, rows.losses(lse), {0}), share)};
  if (getSaving())
    results.push_back(build::reshape(b, loc, lse, build::shapeOf(getLse())));
  return results;
}

int64_t CrossEntropyOp::flops() { return 4 * build::typeOf(getLogits()).getNumElements(); }

Operation *CrossEntropyOp::saveForBackward(OpBuilder &b) {
  if (getSaving())
    return *this;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(*this);
  auto saving =
      CrossEntropyOp::create(b, getLoc(), getLogits(), getLabels(), getCount(), b.getUnitAttr());
  getLoss().replaceAllUsesWith(saving.getLoss());
  erase();
  return saving;
}

void CrossEntropyOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] =
      CrossEntropyGradOp::create(b, getLoc(), g[0], getLogits(), getLabels(), getLse(), getCount());
}

LogicalResult CrossEntropyGradOp::inferTypes(TypeInference &infer, Adaptor op,
                                             SmallVectorImpl<Type> &types) {
  if (failed(wantLabels(infer, op.getLogits(), op.getLabels())) ||
      failed(infer.wantExact(op.getDloss(), "gradient of the loss", {})) ||
      failed(infer.wantExact(op.getLse(), "lse", infer.shape(op.getLabels()))) ||
      failed(wantCount(infer, op.getCount())))
    return failure();
  types.push_back(op.getLogits().getType());
  return success();
}

SmallVector<Value> CrossEntropyGradOp::buildRowWiseForm(OpBuilder &b) {
  Location loc = getLoc();
  RowLoss rows = rowLoss(b, loc, getLogits(), getLabels());
  Value lse = build::reshape(b, loc, getLse(), build::shapeOf(rows.labels));
  Value share = RowLoss::shareOfRow(b, loc, rows.labels, getCount());
  Value weight = build::cast(b, loc, getDloss(), b.getF32Type()); // the loss is f32
  Value gradient = rows.gradient(lse, MulOp::create(b, loc, weight, share));
  RankedTensorType type = build::typeOf(getDlogits());
  gradient = build::cast(b, loc, gradient, type.getElementType());
  return {build::reshape(b, loc, gradient, type.getShape())};
}

LogicalResult CrossEntropyGradOp::evaluate(ArrayRef<const RefTensor *> in,
                                           MutableArrayRef<RefTensor> out) {
  Labels labels(*in[2], in.size() > 4 ? in[4] : nullptr);
  int64_t n = in[1]->cols();
  if (failed(labels.check(*this, n)))
    return failure();
  for (int64_t t = 0; t < in[1]->rows(); ++t) {
    if (labels.ignored(t))
      continue;
    for (int64_t i = 0; i < n; ++i) {
      double p = std::exp(in[1]->data[t * n + i] - in[3]->data[t]);
      out[0].data[t * n + i] = in[0]->data[0] * (p - (i == labels[t])) / labels.count;
    }
  }
  return success();
}

int64_t CrossEntropyGradOp::flops() { return 4 * build::typeOf(getLogits()).getNumElements(); }

//===-- linear_cross_entropy ----------------------------------------------------------------===//

LogicalResult LinearCrossEntropyOp::inferTypes(TypeInference &infer, Adaptor op,
                                               SmallVectorImpl<Type> &types) {
  if (failed(wantLabels(infer, op.getX(), op.getLabels())) ||
      failed(infer.wantRank(op.getW(), "weight", 2)) || failed(wantCount(infer, op.getCount())))
    return failure();
  int64_t k = infer.shape(op.getX()).back();
  if (infer.shape(op.getW())[1] != k)
    return infer.fail("weight is " + shapeText(infer.shape(op.getW())) + " but the input has " +
                      Twine(k) + " columns; expected [V, " + Twine(k) + "]");
  if (infer.element(op.getX()) != infer.element(op.getW()))
    return infer.fail("input and weight have different element types");
  if (TypeAttr compute = op.getComputeAttr();
      compute && !canMultiplyIn(infer.element(op.getX()), compute.getValue()))
    return infer.fail("cannot multiply in this format; expected f32 or tf32, of operands in f32");
  types.push_back(infer.tensor({}, infer.f32()));
  if (op.getRows())
    types.push_back(infer.tensor(infer.shape(op.getLabels()), infer.f32()));
  if (op.getSaving())
    types.append({op.getX().getType(), infer.tensor(infer.shape(op.getW()), infer.f32())});
  return success();
}

/// `logits`: what they are rounded to; null: nothing.
static LogicalResult evaluateLinear(LinearCrossEntropyOp op, ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out, Type logits) {
  const RefTensor &x = *in[0], &w = *in[1];
  Labels labels(*in[2], in.size() > 3 ? in[3] : nullptr);
  int64_t d = x.cols(), n = w.shape[0];
  if (failed(labels.check(op, n)))
    return failure();
  RefTensor none({}, 0.0);
  RefTensor &dx = op.getSaving() ? out[out.size() - 2] : none;
  RefTensor &dw = op.getSaving() ? out[out.size() - 1] : none;
  double sum = 0.0;
  std::vector<double> z(n);
  for (int64_t t = 0; t < x.rows(); ++t) {
    if (labels.ignored(t))
      continue;
    const double *row = x.data.data() + t * d;
    for (int64_t j = 0; j < n; ++j)
      z[j] = std::inner_product(row, row + d, w.data.data() + j * d, 0.0);
    if (const std::optional<support::DType> format = logits ? formatOf(logits) : std::nullopt)
      for (double &score : z)
        score = support::rounded(*format, score);
    double lse = logSumExp(z.data(), n);
    sum += lse - z[labels[t]];
    if (op.getRows())
      out[1].data[t] = lse - z[labels[t]];
    if (!op.getSaving())
      continue;
    for (int64_t j = 0; j < n; ++j) {
      double dz = (std::exp(z[j] - lse) - (j == labels[t])) / labels.count;
      for (int64_t i = 0; i < d; ++i) {
        dx.data[t * d + i] += dz * w.data[j * d + i];
        dw.data[j * d + i] += dz * row[i];
      }
    }
  }
  out[0].data[0] = labels.mean(sum);
  return success();
}

LogicalResult LinearCrossEntropyOp::evaluate(ArrayRef<const RefTensor *> in,
                                             MutableArrayRef<RefTensor> out) {
  return evaluateLinear(*this, in, out, Type());
}

LogicalResult LinearCrossEntropyOp::evaluateRounded(ArrayRef<const RefTensor *> in,
                                                    MutableArrayRef<RefTensor> out) {
  return evaluateLinear(*this, in, out,
                        getRoundedLogits() ? build::typeOf(getX()).getElementType() : Type());
}

int64_t LinearCrossEntropyOp::flops() {
  int64_t rows = build::typeOf(getLabels()).getNumElements(), classes = build::shapeOf(getW())[0];
  return productOf({rows, classes, (getSaving() ? 6 : 2) * build::shapeOf(getW())[1] + 4});
}

Operation *LinearCrossEntropyOp::saveForBackward(OpBuilder &b) {
  if (getSaving())
    return *this;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(*this);
  auto saving = LinearCrossEntropyOp::create(
      b, getLoc(), getX(), getW(), getLabels(), getCount(), getRowsAttr(), b.getUnitAttr(),
      getReducedReductionAttr(), getComputeAttr(), getRoundedLogitsAttr());
  replaceAllUsesWith(saving->getResults().take_front(getNumResults()));
  erase();
  return saving;
}

void LinearCrossEntropyOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Location loc = getLoc();
  for (int i : {0, 1}) {
    Value saved = getSaved()[i];
    Type element = build::typeOf(saved).getElementType();
    Value factor =
        build::broadcast(b, loc, build::cast(b, loc, g[0], element), build::shapeOf(saved));
    Value grad = MulOp::create(b, loc, factor, saved);
    grads[i] = build::cast(b, loc, grad, build::typeOf(getOperand(i)).getElementType());
  }
}

} // namespace hydra
