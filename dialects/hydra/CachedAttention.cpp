// Attention of a call's tokens over those that earlier calls left in slots.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

namespace {

/// Operands, by their numbers.
enum Operand : unsigned { kQ, kK, kV, kKeys, kValues, kPosition };

/// Sizes and mask.
struct CachedAttentionShape {
  int64_t batch, calls, heads, keyHeads, slots, width, valueWidth;
  int64_t chunk, window; ///< 0: none
  double scale, cap;     ///< cap 0: none

  explicit CachedAttentionShape(CachedAttentionOp op) {
    ArrayRef<int64_t> q = build::shapeOf(op.getQ()), values = build::shapeOf(op.getValues());
    batch = q[0], calls = q[1], heads = q[2], width = q[3];
    keyHeads = values[1], slots = values[2], valueWidth = values[3];
    chunk = op.maskChunk(), window = op.maskWindow();
    scale = op.getScale(), cap = op.scoreCap();
  }

  /// The first token that one of a call from `begin` on sees, which stands at `own`. What the call
  /// itself overwrites is seen by none.
  int64_t first(int64_t begin, int64_t own) const {
    const int64_t ofChunk = chunk ? own / chunk * chunk : 0;
    return std::max({ofChunk, window ? own - window + 1 : 0, begin + calls - slots});
  }
  double score(double product) const {
    return cap > 0.0 ? cap * std::tanh(scale * product / cap) : scale * product;
  }
  /// Where a token's row of a key head lies in the slots.
  int64_t slotRow(int64_t b, int64_t head, int64_t position) const {
    return (b * keyHeads + head) * slots + position % slots;
  }
};

double dot(const double *a, const double *b, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Puts the rows of a call [B, C, H, w] into their slots [B, H, slots, w].
void storeRows(const CachedAttentionShape &shape, const RefTensor &rows, const RefTensor &position,
               RefTensor &slots) {
  const int64_t width = slots.shape[3];
  for (int64_t b = 0; b < shape.batch; ++b) {
    const auto begin = static_cast<int64_t>(position.data[b]);
    if (begin < 0)
      continue;
    for (int64_t i = 0; i < shape.calls; ++i)
      for (int64_t h = 0; h < shape.keyHeads; ++h)
        std::copy_n(&rows.data[((b * shape.calls + i) * shape.keyHeads + h) * width], width,
                    &slots.data[shape.slotRow(b, h, begin + i) * width]);
  }
}

} // namespace

LogicalResult CachedAttentionOp::inferTypes(TypeInference &infer, Adaptor op,
                                            SmallVectorImpl<Type> &types) {
  Value q = op.getQ(), keys = op.getKeys(), values = op.getValues();
  if (failed(infer.wantFloat(q, "query")) || failed(infer.wantRank(q, "query", 4)) ||
      failed(infer.wantRank(op.getK(), "key", 4)) || failed(infer.wantRank(keys, "kept keys", 4)) ||
      failed(infer.wantRank(values, "kept values", 4)))
    return failure();
  ArrayRef<int64_t> qs = infer.shape(q), ks = infer.shape(keys), vs = infer.shape(values);
  const int64_t heads = ks[1], slots = ks[2];
  if (failed(infer.wantShape(op.getK(), "key", {qs[0], qs[1], heads, qs[3]})) ||
      failed(infer.wantShape(op.getV(), "value", {qs[0], qs[1], heads, vs[3]})) ||
      failed(infer.wantShape(keys, "kept keys", {qs[0], heads, slots, qs[3]})) ||
      failed(infer.wantShape(values, "kept values", {qs[0], heads, slots, vs[3]})) ||
      failed(infer.wantExact(op.getPosition(), "position", {qs[0]})))
    return failure();
  if (qs[2] % heads)
    return infer.fail(Twine(qs[2]) + " query heads cannot share " + Twine(heads) +
                      " key heads evenly");
  const Type element = infer.element(q), kept = infer.element(keys);
  if (infer.element(op.getK()) != element || infer.element(op.getV()) != element)
    return infer.fail("query, key and value have different element types");
  if (infer.element(values) != kept || (kept != element && !element.isF32()))
    return infer.fail("kept keys and values have different element types, or other than those of "
                      "query, key and value, which are not f32");
  if (slots < qs[1])
    return infer.fail("keeps " + Twine(slots) + " tokens; expected at least the " + Twine(qs[1]) +
                      " of a call");
  for (Attribute size : {op.getChunkAttr(), op.getWindowAttr()})
    if (size && intValue(size) < 1)
      return infer.fail("chunk and window must be positive");
  if (std::max(qs[3], vs[3]) > AttentionOp::kWidest)
    return infer.fail("heads are " + Twine(qs[3]) + " and values " + Twine(vs[3]) +
                      " wide; expected at most " + Twine(AttentionOp::kWidest));
  types.push_back(infer.tensor({qs[0], qs[1], qs[2], vs[3]}, infer.element(q)));
  types.push_back(keys.getType());
  types.push_back(values.getType());
  return infer.wantScores(op.getScale(), op.getCapAttr());
}

LogicalResult CachedAttentionOp::evaluate(ArrayRef<const RefTensor *> in,
                                          MutableArrayRef<RefTensor> out) {
  const CachedAttentionShape shape(*this);
  const RefTensor &q = *in[kQ], &position = *in[kPosition];
  RefTensor &keys = out[1], &values = out[2];
  keys.data = in[kKeys]->data;
  values.data = in[kValues]->data;
  storeRows(shape, *in[kK], position, keys);
  storeRows(shape, *in[kV], position, values);
  std::vector<double> p(shape.slots);
  for (int64_t row = 0; row < shape.batch * shape.calls * shape.heads; ++row) {
    const int64_t b = row / (shape.calls * shape.heads), call = row / shape.heads % shape.calls;
    const int64_t head = row % shape.heads / (shape.heads / shape.keyHeads);
    if (position.data[b] < 0)
      continue; // zeros
    const auto begin = static_cast<int64_t>(position.data[b]);
    const int64_t own = begin + call, first = shape.first(begin, own);
    double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (int64_t t = first; t <= own; ++t) {
      p[t % shape.slots] =
          shape.score(dot(&q.data[row * shape.width],
                          &keys.data[shape.slotRow(b, head, t) * shape.width], shape.width));
      top = std::max(top, p[t % shape.slots]);
    }
    double *o = &out[0].data[row * shape.valueWidth];
    for (int64_t t = first; t <= own; ++t) {
      const double weight = std::exp(p[t % shape.slots] - top);
      const double *value = &values.data[shape.slotRow(b, head, t) * shape.valueWidth];
      sum += weight;
      for (int64_t e = 0; e < shape.valueWidth; ++e)
        o[e] += weight * value[e];
    }
    for (int64_t e = 0; e < shape.valueWidth; ++e)
      o[e] /= sum;
  }
  return success();
}

int64_t CachedAttentionOp::maskChunk() { return getChunkAttr() ? intValue(getChunkAttr()) : 0; }
int64_t CachedAttentionOp::maskWindow() { return getWindowAttr() ? intValue(getWindowAttr()) : 0; }
double CachedAttentionOp::scoreCap() { return getCapAttr() ? realValue(getCapAttr()) : 0.0; }

/// Of a sequence whose slots are full.
int64_t CachedAttentionOp::flops() {
  const CachedAttentionShape shape(*this);
  int64_t seen = shape.slots;
  for (int64_t size : {shape.chunk, shape.window})
    seen = size ? std::min(seen, size) : seen;
  return productOf(
      {2, shape.batch * shape.calls, shape.heads, seen, shape.width + shape.valueWidth});
}
/// What is kept is read once; rows of the call alone are written.
int64_t CachedAttentionOp::bytes() {
  return operandAndResultBytes(*this) - bytesOf(getKeys().getType()) -
         bytesOf(getValues().getType()) + bytesOf(getK().getType()) + bytesOf(getV().getType());
}
Precision CachedAttentionOp::precisionClass() { return Precision::Matmul; }
bool CachedAttentionOp::takesRounded(unsigned operand) { return operand != kPosition; }
OpClass CachedAttentionOp::costClass() { return OpClass::attention; }

OperandLayout CachedAttentionOp::operandLayout(unsigned operand) {
  if (operand == kKeys || operand == kValues || operand == kPosition)
    return {};
  return {/*denseInner=*/1, /*mergedRows=*/false, /*apartRows=*/false, /*alignment=*/16};
}
OperandLayout CachedAttentionOp::resultLayout(unsigned result) {
  return result == 0 ? operandLayout(kQ) : OperandLayout{};
}
SmallVector<unsigned> CachedAttentionOp::overwritableOperands(unsigned result) {
  if (result == 0)
    return {};
  return {result == 1 ? kKeys : kValues};
}

} // namespace hydra
