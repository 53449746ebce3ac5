// Attention with grouped heads, caps on scores, and causal, chunked and sliding-window masks.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

namespace {

/// Sizes and mask of an attention, read off either operation.
struct AttentionShape {
  int64_t batch, queries, keys, heads, keyHeads, width, valueWidth;
  double scale, cap; ///< cap 0: none
  bool causal;
  int64_t chunk, window; ///< 0: none

  template <typename Op>
  AttentionShape(Op op, ArrayRef<int64_t> q, ArrayRef<int64_t> k, ArrayRef<int64_t> v)
      : batch(q[0]), queries(q[1]), keys(k[1]), heads(q[2]), keyHeads(k[2]), width(q[3]),
        valueWidth(v[3]), scale(op.getScale()), cap(op.scoreCap()), causal(op.getCausal()),
        chunk(op.maskChunk()), window(op.maskWindow()) {}

  bool sees(int64_t i, int64_t j) const {
    return !(causal && j > i) && !(chunk && i / chunk != j / chunk) && !(window && i - j >= window);
  }
  double score(double product) const {
    return cap > 0.0 ? cap * std::tanh(scale * product / cap) : scale * product;
  }
  /// The derivative of a score, by the product that it comes from.
  double slope(double score) const {
    const double part = cap > 0.0 ? score / cap : 0.0;
    return scale * (1.0 - part * part);
  }
  int64_t queryRow(int64_t b, int64_t i, int64_t h) const { return (b * queries + i) * heads + h; }
  int64_t keyRow(int64_t b, int64_t j, int64_t h) const {
    return (b * keys + j) * keyHeads + h / (heads / keyHeads);
  }

  /// Pairs of query and key that one head computes; a causal triangle counts half its square.
  double pairs() const {
    if (!causal)
      return static_cast<double>(queries) * keys;
    double reach = chunk ? std::min(chunk, queries) : queries;
    double all = queries * reach / 2.0;
    if (window && window < reach)
      all = queries * static_cast<double>(window) -
            (chunk ? queries / reach : 1.0) * window * window / 2.0;
    return all;
  }
  /// Of so many matmuls over each width, of all pairs.
  int64_t flops(int64_t overWidth, int64_t overValueWidth) const {
    // As doubles: the counts of a plan too large to run are no integers.
    const double most = static_cast<double>(int64_t{1} << 62);
    return static_cast<int64_t>(
        std::min(most, static_cast<double>(batch * heads) * pairs() * 2.0 *
                           (overWidth * width + overValueWidth * valueWidth)));
  }
};

/// Calls `visit(b, h, i)` for every query row of every head.
template <typename Visit> void forEachQuery(const AttentionShape &shape, Visit visit) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t i = 0; i < shape.queries; ++i)
        visit(b, h, i);
}

double dot(const double *a, const double *b, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

} // namespace

template <typename Adaptor> static LogicalResult wantAttention(TypeInference &infer, Adaptor op) {
  Value q = op.getQ(), k = op.getK(), v = op.getV();
  if (failed(infer.wantFloat(q, "query")) || failed(infer.wantRank(q, "query", 4)) ||
      failed(infer.wantRank(k, "key", 4)) || failed(infer.wantRank(v, "value", 4)))
    return failure();
  ArrayRef<int64_t> qs = infer.shape(q), ks = infer.shape(k), vs = infer.shape(v);
  if (failed(infer.wantShape(k, "key", {qs[0], ks[1], ks[2], qs[3]})) ||
      failed(infer.wantShape(v, "value", {qs[0], ks[1], ks[2], vs[3]})))
    return failure();
  if (qs[2] % ks[2])
    return infer.fail(Twine(qs[2]) + " query heads cannot share " + Twine(ks[2]) +
                      " key heads evenly");
  if (infer.element(k) != infer.element(q) || infer.element(v) != infer.element(q))
    return infer.fail("query, key and value have different element types");
  bool masked = op.getChunkAttr() || op.getWindowAttr();
  if (masked && !op.getCausal())
    return infer.fail("chunk and window need causal");
  if (op.getCausal() && qs[1] != ks[1])
    return infer.fail(Twine(qs[1]) + " queries but " + Twine(ks[1]) +
                      " keys; a causal mask expects as many");
  for (Attribute size : {op.getChunkAttr(), op.getWindowAttr()})
    if (size && intValue(size) < 1)
      return infer.fail("chunk and window must be positive");
  if (std::max(qs[3], vs[3]) > AttentionOp::kWidest)
    return infer.fail("heads are " + Twine(qs[3]) + " and values " + Twine(vs[3]) +
                      " wide; expected at most " + Twine(AttentionOp::kWidest));
  // Kernels find the largest score of a row before they scale.
  return infer.wantScores(op.getScale(), op.getCapAttr());
}

LogicalResult AttentionOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  if (failed(wantAttention(infer, op)))
    return failure();
  for (auto [attribute, what] :
       {std::pair{op.getDropoutAttr(), "weights"}, std::pair{op.getDropkeyAttr(), "keys"}}) {
    // One that depends on the layer is known when layers are written out.
    const double part = attribute && !hasExpr(attribute) ? realValue(attribute) : 0.0;
    if (!(part >= 0.0 && part < 1.0))
      return infer.fail("drops a part of " + numberText(part) + " of its " + what +
                        "; expected at least 0 and less than 1");
  }
  SmallVector<int64_t> shape(infer.shape(op.getQ()));
  shape[3] = infer.shape(op.getV())[3];
  types.push_back(infer.tensor(shape, infer.element(op.getQ())));
  if (op.getSaving())
    types.push_back(infer.tensor({shape[0], shape[2], shape[1]}, infer.f32()));
  return success();
}

LogicalResult AttentionOp::evaluate(ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out) {
  const RefTensor &q = *in[0], &k = *in[1], &v = *in[2];
  AttentionShape shape(*this, q.shape, k.shape, v.shape);
  std::vector<double> score(shape.keys);
  forEachQuery(shape, [&](int64_t b, int64_t h, int64_t i) {
    double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
    const double *query = &q.data[shape.queryRow(b, i, h) * shape.width];
    for (int64_t j = 0; j < shape.keys; ++j)
      if (shape.sees(i, j)) {
        score[j] =
            shape.score(dot(query, &k.data[shape.keyRow(b, j, h) * shape.width], shape.width));
        top = std::max(top, score[j]);
      }
    double *o = &out[0].data[shape.queryRow(b, i, h) * shape.valueWidth];
    for (int64_t j = 0; j < shape.keys; ++j)
      if (shape.sees(i, j)) {
        double p = std::exp(score[j] - top);
        const double *value = &v.data[shape.keyRow(b, j, h) * shape.valueWidth];
        sum += p;
        for (int64_t e = 0; e < shape.valueWidth; ++e)
          o[e] += p * value[e];
      }
    if (sum > 0.0)
      for (int64_t e = 0; e < shape.valueWidth; ++e)
        o[e] /= sum;
    if (getSaving())
      out[1].data[(b * shape.heads + h) * shape.queries + i] = top + std::log(sum);
  });
  return success();
}

Operation *AttentionOp::saveForBackward(OpBuilder &b) {
  if (getSaving())
    return *this;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(*this);
  auto saving = AttentionOp::create(b, getLoc(), getQ(), getK(), getV(), getScaleAttr(),
                                    getCapAttr(), getCausalAttr(), getChunkAttr(), getWindowAttr(),
                                    getDropoutAttr(), getDropkeyAttr(), b.getUnitAttr());
  getO().replaceAllUsesWith(saving.getO());
  erase();
  return saving;
}

void AttentionOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  auto grad = AttentionGradOp::create(b, getLoc(), g[0], getQ(), getK(), getV(), getO(), getLse(),
                                      getScaleAttr(), getCapAttr(), getCausalAttr(), getChunkAttr(),
                                      getWindowAttr());
  llvm::copy(grad->getResults(), grads.begin());
}

/// The size of a chunk or window that hides something in a sequence; 0: none.
static int64_t hidingSize(Attribute size, Value q) {
  return size && intValue(size) < build::shapeOf(q)[1] ? intValue(size) : 0;
}
int64_t AttentionOp::maskChunk() { return hidingSize(getChunkAttr(), getQ()); }
int64_t AttentionOp::maskWindow() { return hidingSize(getWindowAttr(), getQ()); }
int64_t AttentionGradOp::maskChunk() { return hidingSize(getChunkAttr(), getQ()); }
int64_t AttentionGradOp::maskWindow() { return hidingSize(getWindowAttr(), getQ()); }
double AttentionOp::scoreCap() { return getCapAttr() ? realValue(getCapAttr()) : 0.0; }
double AttentionOp::droppedWeights() {
  return getDropoutAttr() ? realValue(getDropoutAttr()) : 0.0;
}
double AttentionOp::droppedKeys() { return getDropkeyAttr() ? realValue(getDropkeyAttr()) : 0.0; }
double AttentionGradOp::scoreCap() { return getCapAttr() ? realValue(getCapAttr()) : 0.0; }

int64_t AttentionOp::flops() {
  return AttentionShape(*this, build::shapeOf(getQ()), build::shapeOf(getK()),
                        build::shapeOf(getV()))
      .flops(1, 1);
}
OpClass AttentionOp::costClass() { return OpClass::attention; }
Precision AttentionOp::precisionClass() { return Precision::Matmul; }
bool AttentionOp::takesRounded(unsigned) { return true; }
/// Row statistics [B, H, S] are dense; everything else has any strides but the last.
static OperandLayout layoutOfHeads(Value v) {
  if (build::shapeOf(v).size() != 4)
    return {};
  return {/*denseInner=*/1, /*mergedRows=*/false, /*apartRows=*/false, /*alignment=*/16};
}

OperandLayout AttentionOp::operandLayout(unsigned) {
  return {/*denseInner=*/1, /*mergedRows=*/false, /*apartRows=*/false, /*alignment=*/16};
}
OperandLayout AttentionOp::resultLayout(unsigned i) {
  return layoutOfHeads(getOperation()->getResult(i));
}

LogicalResult AttentionGradOp::inferTypes(TypeInference &infer, Adaptor op,
                                          SmallVectorImpl<Type> &types) {
  if (failed(wantAttention(infer, op)))
    return failure();
  ArrayRef<int64_t> q = infer.shape(op.getQ());
  if (failed(infer.wantSameType(op.getDO(), "gradient", op.getO(), "output")) ||
      failed(infer.wantShape(op.getO(), "output", {q[0], q[1], q[2], infer.shape(op.getV())[3]})) ||
      failed(infer.wantExact(op.getLse(), "lse", {q[0], q[2], q[1]})))
    return failure();
  types.append({op.getQ().getType(), op.getK().getType(), op.getV().getType()});
  return success();
}

LogicalResult AttentionGradOp::evaluate(ArrayRef<const RefTensor *> in,
                                        MutableArrayRef<RefTensor> out) {
  const RefTensor &dO = *in[0], &q = *in[1], &k = *in[2], &v = *in[3], &o = *in[4], &lse = *in[5];
  AttentionShape shape(*this, q.shape, k.shape, v.shape);
  forEachQuery(shape, [&](int64_t b, int64_t h, int64_t i) {
    int64_t row = shape.queryRow(b, i, h);
    const double *query = &q.data[row * shape.width], *go = &dO.data[row * shape.valueWidth];
    double delta = dot(go, &o.data[row * shape.valueWidth], shape.valueWidth);
    double normalizer = lse.data[(b * shape.heads + h) * shape.queries + i];
    for (int64_t j = 0; j < shape.keys; ++j) {
      if (!shape.sees(i, j))
        continue;
      int64_t keyRow = shape.keyRow(b, j, h);
      const double *key = &k.data[keyRow * shape.width],
                   *value = &v.data[keyRow * shape.valueWidth];
      double score = shape.score(dot(query, key, shape.width));
      double p = std::exp(score - normalizer);
      double ds = shape.slope(score) * p * (dot(go, value, shape.valueWidth) - delta);
      for (int64_t e = 0; e < shape.width; ++e) {
        out[0].data[row * shape.width + e] += ds * key[e];
        out[1].data[keyRow * shape.width + e] += ds * query[e];
      }
      for (int64_t e = 0; e < shape.valueWidth; ++e)
        out[2].data[keyRow * shape.valueWidth + e] += p * go[e];
    }
  });
  return success();
}

int64_t AttentionGradOp::flops() {
  return AttentionShape(*this, build::shapeOf(getQ()), build::shapeOf(getK()),
                        build::shapeOf(getV()))
      .flops(3, 2);
}
OpClass AttentionGradOp::costClass() { return OpClass::attention; }
Precision AttentionGradOp::precisionClass() { return Precision::Matmul; }
bool AttentionGradOp::takesRounded(unsigned operand) { return operand != 5; } // all but lse
OperandLayout AttentionGradOp::resultLayout(unsigned i) {
  return layoutOfHeads(getOperation()->getResult(i));
}
OperandLayout AttentionGradOp::operandLayout(unsigned i) {
  return layoutOfHeads(getOperation()->getOperand(i));
}

} // namespace hydra
