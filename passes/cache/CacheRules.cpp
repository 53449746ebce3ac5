// What operations keep of earlier tokens, and how they go on from it.
#include "passes/cache/SequenceCache.h"

using namespace mlir;

namespace hydra {

namespace {

template <typename Model, typename Op>
using RuleOf = CacheOpInterface::ExternalModel<Model, Op>;

/// Keys and values, as far back as the mask lets a token see.
struct AttentionCache : RuleOf<AttentionCache, AttentionOp> {
  static constexpr int64_t kTokens = 1;

  bool needsEarlier(Operation *, int64_t axis) const { return axis == kTokens; }

  FailureOr<Value> readOn(Operation *op, SequenceCache &cache, int64_t) const {
    auto attention = cast<AttentionOp>(op);
    if (!attention.getCausal())
      return op->emitOpError("sees later tokens, which a program that reads on does not have; "
                             "expected causal");
    if (build::shapeOf(attention.getK())[1] != cache.tokens())
      return op->emitOpError() << "has keys of " << build::shapeOf(attention.getK())[1]
                               << " tokens in a call of " << cache.tokens();
    auto number = [](Attribute value) {
      return value ? intValue(value) : std::numeric_limits<int64_t>::max() / 2;
    };
    const int64_t window = number(attention.getWindowAttr()), chunk = number(attention.getChunkAttr());
    const SequenceCache::Ring &ring = cache.ring(std::min(window, chunk));
    OpBuilder &b = cache.builder();
    const Location loc = cache.loc();
    auto headsFirst = [&](Value x) {
      return TransposeOp::create(b, loc, x, b.getI64ArrayAttr({0, 2, 1, 3})).getResult();
    };
    FailureOr<Value> keys = cache.remember("keys", headsFirst(attention.getK()), ring);
    FailureOr<Value> values = cache.remember("values", headsFirst(attention.getV()), ring);
    if (failed(keys) || failed(values))
      return failure();

    // The heads that share keys are rows of one matmul.
    ArrayRef<int64_t> q = build::shapeOf(attention.getQ());
    const int64_t heads = build::shapeOf(*keys)[1], group = q[2] / heads, calls = q[1];
    const int64_t width = build::shapeOf(*values)[3];
    const int64_t rows[] = {q[0], heads, group * calls, q[3]};
    const int64_t scores[] = {q[0], heads, group, calls, ring.slots};
    Value query = build::reshape(b, loc, headsFirst(attention.getQ()), rows);
    Value s = MatmulOp::create(b, loc, query, *keys, Value(), UnitAttr(), b.getUnitAttr(),
                               sumType(b, query), UnitAttr(), TypeAttr());
    s = build::scale(b, loc, build::reshape(b, loc, s, scores), attention.getScale());
    Value p = softmaxOfSeen(cache, s, ring, window, chunk);
    p = build::cast(b, loc, build::reshape(b, loc, p, {q[0], heads, group * calls, ring.slots}),
                    build::typeOf(*values).getElementType());
    Value o = MatmulOp::create(b, loc, p, *values, UnitAttr(), UnitAttr());
    o = build::reshape(b, loc, o, {q[0], q[2], calls, width});
    return headsFirst(o);
  }

private:
  /// Scores of narrow factors stay f32.
  static TypeAttr sumType(OpBuilder &b, Value factor) {
    return build::typeOf(factor).getElementType().isF32() ? TypeAttr()
                                                         : TypeAttr::get(b.getF32Type());
  }

  /// Of scores [B, Hk, G, C, slots]: over the tokens from the first that a query sees to its own.
  static Value softmaxOfSeen(SequenceCache &cache, Value scores, const SequenceCache::Ring &ring,
                             int64_t window, int64_t chunk) {
    OpBuilder &b = cache.builder();
    const Location loc = cache.loc();
    ArrayRef<int64_t> shape = build::shapeOf(scores);
    auto constant = [&](Value like, double value) {
      return build::constant(b, loc, like.getType(), value);
    };
    Value last = cache.positions();
    Value first = constant(last, 0);
    if (window <= (1 << 24))
      first = MaxOp::create(b, loc, first,
                            SubOp::create(b, loc, last, constant(last, static_cast<double>(window - 1))));
    if (chunk <= (1 << 24)) {
      Value size = constant(last, static_cast<double>(chunk));
      Value number = DivOp::create(b, loc, last, size);
      number = build::cast(b, loc, build::cast(b, loc, number, b.getI32Type()), b.getF32Type());
      first = MaxOp::create(b, loc, first, MulOp::create(b, loc, number, size));
    }
    auto ofQueries = [&](Value x) {
      return build::broadcast(b, loc, build::reshape(b, loc, x, {shape[0], 1, 1, shape[3], 1}), shape);
    };
    Value token = build::broadcast(
        b, loc, build::reshape(b, loc, ring.position, {shape[0], 1, 1, 1, shape[4]}), shape);
    Value unseen = constant(scores, -std::numeric_limits<double>::infinity());
    auto when = [&](StringRef is, Value bound, Value then) {
      Value seen = CompareOp::create(b, loc, token, ofQueries(bound), b.getStringAttr(is));
      return SelectOp::create(b, loc, seen, then, unseen).getResult();
    };
    return SoftmaxOp::create(b, loc, when("le", last, when("ge", first, scores)));
  }
};

/// Nothing but where the call begins.
struct RopeCache : RuleOf<RopeCache, RopeOp> {
  bool needsEarlier(Operation *op, int64_t axis) const {
    return axis == 1 && !cast<RopeOp>(op).getPositions();
  }
  FailureOr<Value> readOn(Operation *op, SequenceCache &cache, int64_t) const {
    auto rope = cast<RopeOp>(op);
    return RopeOp::create(cache.builder(), cache.loc(), rope.getX(), cache.positions(),
                          rope.getBaseAttr(), rope.getHalfSplitAttr(), rope.getInverseAttr(),
                          rope.getPeriodAttr())
        .getResult();
  }
};

/// Zeros in front of the first token are the last tokens of the call before.
struct PadCache : RuleOf<PadCache, PadOp> {
  bool needsEarlier(Operation *op, int64_t axis) const {
    auto pad = cast<PadOp>(op);
    return pad.getAxis() == axis && pad.getBefore() > 0;
  }
  FailureOr<Value> readOn(Operation *op, SequenceCache &cache, int64_t axis) const {
    auto pad = cast<PadOp>(op);
    OpBuilder &b = cache.builder();
    const Location loc = cache.loc();
    SmallVector<int64_t> shape(build::shapeOf(pad.getX()));
    shape[axis] = pad.getBefore();
    Value zeros = build::constant(b, loc, build::typeOf(pad.getX()).clone(shape), 0.0);
    FailureOr<Value> before = cache.earlier("rows", zeros);
    if (failed(before))
      return failure();
    auto along = b.getI64IntegerAttr(axis);
    Value all = ConcatOp::create(b, loc, ValueRange{*before, pad.getX()}, along);
    cache.keep("rows", SliceOp::create(b, loc, all, along, b.getI64IntegerAttr(cache.tokens()),
                                       b.getI64IntegerAttr(pad.getBefore())));
    if (pad.getAfter() == 0)
      return all;
    return PadOp::create(b, loc, all, along, b.getI64IntegerAttr(0), pad.getAfterAttr()).getResult();
  }
};

/// Nothing: who goes on is chosen among the tokens of a call.
struct TopKCache : RuleOf<TopKCache, TopKOp> {
  bool needsEarlier(Operation *op, int64_t axis) const {
    return axis == build::typeOf(op->getOperand(0)).getRank() - 1;
  }
  FailureOr<Value> readOn(Operation *op, SequenceCache &cache, int64_t) const {
    return cache.builder().clone(*op)->getResult(0);
  }
};

} // namespace

void attachCacheRules(MLIRContext &context) {
  AttentionOp::attachInterface<AttentionCache>(context);
  RopeOp::attachInterface<RopeCache>(context);
  PadOp::attachInterface<PadCache>(context);
  TopKOp::attachInterface<TopKCache>(context);
}

} // namespace hydra
