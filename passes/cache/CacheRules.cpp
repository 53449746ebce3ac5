// What operations keep of earlier tokens, and how they go on from it.
#include "passes/cache/SequenceCache.h"

using namespace mlir;

namespace hydra {

namespace {

template <typename Model, typename Op> using RuleOf = CacheOpInterface::ExternalModel<Model, Op>;

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
    auto hiding = [&](Attribute size) {
      return size && intValue(size) < cache.mostTokens() ? size : Attribute();
    };
    const Attribute window = hiding(attention.getWindowAttr()),
                    chunk = hiding(attention.getChunkAttr());
    int64_t reach = cache.mostTokens();
    for (Attribute size : {window, chunk})
      reach = size ? std::min(reach, intValue(size)) : reach;

    OpBuilder &b = cache.builder();
    Value k = attention.getK(), v = attention.getV();
    FailureOr<Value> keys = slots(cache, "keys", k, reach),
                     values = slots(cache, "values", v, reach);
    if (failed(keys) || failed(values))
      return failure();
    auto made = CachedAttentionOp::create(b, cache.loc(), attention.getQ(), k, v, *keys, *values,
                                          cache.position(), attention.getScaleAttr(),
                                          attention.getCapAttr(), chunk, window);
    cache.replace("keys", made.getNewKeys());
    cache.replace("values", made.getNewValues());
    return made.getO();
  }

private:
  /// What is kept of rows [B, C, H, w]: [B, H, slots, w].
  static FailureOr<Value> slots(SequenceCache &cache, StringRef what, Value rows, int64_t reach) {
    ArrayRef<int64_t> shape = build::shapeOf(rows);
    const Type element = cache.narrow() ? cache.narrow() : build::typeOf(rows).getElementType();
    const int64_t kept[] = {shape[0], shape[2], cache.slots(reach), shape[3]};
    return cache.kept(what, RankedTensorType::get(kept, element));
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
    return PadOp::create(b, loc, all, along, b.getI64IntegerAttr(0), pad.getAfterAttr())
        .getResult();
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
