// Attention as matmuls, a cap, masks and a softmax over all scores.
#include "passes/model/AttentionSteps.h"

#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/lower/BufferCategory.h"

#include <limits>

using namespace mlir;

namespace hydra {

namespace {

/// Writes one attention at its place.
class Writer {
public:
  Writer(AttentionOp op, StringRef pass)
      : op(op), b(op), loc(madeBy(pass, op.getLoc())), q(build::shapeOf(op.getQ())),
        k(build::shapeOf(op.getK())), v(build::shapeOf(op.getV())) {}

  Value write(const AttentionChanges &changes) {
    loc = withCategory(loc, Category::act_attn_scores);
    // Query heads that share a key head are rows of one matmul.
    const int64_t shared = q[2] / k[2];
    Value queries =
        build::reshape(b, loc, headsFirst(op.getQ()), {q[0], k[2], shared * q[1], q[3]});
    const TypeAttr type = changes.wideScores ? TypeAttr::get(b.getF32Type()) : TypeAttr();
    Value scores = MatmulOp::create(b, loc, queries, headsFirst(op.getK()), Value(), UnitAttr(),
                                    b.getUnitAttr(), type, UnitAttr(), TypeAttr());
    scores = build::reshape(b, loc, scores, {q[0], q[2], q[1], k[1]});
    if (const double cap = op.scoreCap(); cap > 0.0) {
      scores = build::scale(b, loc, scores, op.getScale() / cap);
      scores = build::scale(b, loc, TanhOp::create(b, loc, scores), cap);
    } else {
      scores = build::scale(b, loc, scores, op.getScale());
    }
    if (op.getCausal())
      scores = keep(scores, compare(column(), row(), Predicate::le));
    if (op.maskChunk())
      scores = keep(scores, compare(chunkOf(0), chunkOf(1), Predicate::eq));
    if (op.maskWindow()) {
      Value behind = SubOp::create(b, loc, row(), column());
      scores = keep(scores, compare(behind,
                                    build::constant(b, loc, behind.getType(),
                                                    static_cast<double>(op.maskWindow())),
                                    Predicate::lt));
    }
    if (changes.keptKeys)
      scores = keep(scores, changes.keptKeys(b, loc, scores));
    loc = withCategory(loc, Category::act_softmax);
    Value weights = SoftmaxOp::create(b, loc, scores);
    if (changes.onWeights)
      weights = changes.onWeights(b, loc, weights);
    weights = build::cast(b, loc, weights, build::typeOf(op.getV()).getElementType());
    weights = build::reshape(b, loc, weights, {q[0], k[2], shared * q[1], k[1]});
    loc = withCategory(loc, Category::act_attn_out);
    Value o = MatmulOp::create(b, loc, weights, headsFirst(op.getV()), UnitAttr(), UnitAttr());
    return headsFirst(build::reshape(b, loc, o, {q[0], q[2], q[1], v[3]}));
  }

private:
  /// [B, S, H, hd] to [B, H, S, hd], and back.
  Value headsFirst(Value x) {
    return TransposeOp::create(b, withCategory(loc, categoryOf(x)), x,
                               b.getI64ArrayAttr({0, 2, 1, 3}));
  }

  Value index(ArrayRef<int64_t> shape, int64_t axis) {
    return IotaOp::create(b, loc, RankedTensorType::get(shape, b.getI32Type()),
                          b.getI64ArrayAttr(shape), b.getI64IntegerAttr(axis),
                          TypeAttr::get(b.getI32Type()));
  }
  // Over all scores, so that masks are made where they are used and never stored.
  Value row() { return index({q[0], q[2], q[1], k[1]}, 2); }
  Value column() { return index({q[0], q[2], q[1], k[1]}, 3); }

  /// The number of the chunk in which the row (0) or the column (1) of a score lies.
  Value chunkOf(int64_t axis) {
    const int64_t size = op.maskChunk(), length = axis == 0 ? q[1] : k[1];
    const int64_t count = llvm::divideCeil(length, size);
    Value numbers = build::reshape(b, loc, index({count, size}, 0), {count * size});
    if (count * size > length)
      numbers = SliceOp::create(b, loc, numbers, b.getI64IntegerAttr(0), b.getI64IntegerAttr(0),
                                b.getI64IntegerAttr(length));
    if (axis == 0)
      numbers = build::reshape(b, loc, numbers, {length, 1});
    return build::broadcast(b, loc, numbers, {q[0], q[2], q[1], k[1]});
  }

  Value compare(Value x, Value y, Predicate is) { return CompareOp::create(b, loc, x, y, is); }

  /// Minus infinity where the condition does not hold.
  Value keep(Value scores, Value condition) {
    Value never =
        build::constant(b, loc, scores.getType(), -std::numeric_limits<double>::infinity());
    return SelectOp::create(b, loc, condition, scores, never);
  }

  AttentionOp op;
  OpBuilder b;
  Location loc;
  ArrayRef<int64_t> q, k, v;
};

} // namespace

Value writeAttentionSteps(AttentionOp op, StringRef pass, const AttentionChanges &changes) {
  return Writer(op, pass).write(changes);
}

} // namespace hydra
