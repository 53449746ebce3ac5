// State of sequences: read at a call's begin, written at its end.
#include "passes/cache/SequenceCache.h"

using namespace mlir;

namespace hydra {

/// The number of tokens in the programs' first argument, tokens [B, C].
static ArrayRef<int64_t> tokensShape(EntryOp entry) {
  return build::shapeOf(entry.getBody().getArgument(0));
}

SequenceCache::SequenceCache(EntryOp entry, int64_t context, int64_t longest)
    : entry(entry), context(context), longest(longest), sequences(tokensShape(entry)[0]),
      perCall(tokensShape(entry)[1]),
      b(OpBuilder::atBlockBegin(&entry.getBody().front())), where(entry.getLoc()) {
  position = entry.addArgument(kPosition, RankedTensorType::get({sequences}, b.getF32Type()),
                               where, b.getUnitAttr());
  begin = MaxOp::create(b, where, position, number({sequences}, 0));
  head = begin.getDefiningOp();
}

void SequenceCache::startAt(Operation *op, unsigned number, int64_t dim) {
  b.setInsertionPoint(op);
  where = op->getLoc();
  current = number;
  currentDim = dim;
}

Value SequenceCache::number(ArrayRef<int64_t> shape, double value) {
  return build::constant(b, where, RankedTensorType::get(shape, b.getF32Type()), value);
}

Value SequenceCache::spread(Value numbers, ArrayRef<int64_t> shape, int64_t dim) {
  SmallVector<int64_t> aligned(shape.size(), 1);
  if (sequences > 1)
    aligned[dim] = sequences;
  return build::broadcast(b, where, build::reshape(b, where, numbers, aligned), shape);
}

Value SequenceCache::compare(Value a, StringRef is, double value) {
  return CompareOp::create(b, where, a, build::constant(b, where, a.getType(), value),
                           b.getStringAttr(is));
}

Value SequenceCache::whole(Value x) {
  return build::cast(b, where, build::cast(b, where, x, b.getI32Type()), b.getF32Type());
}

/// Builds what all operations share in front of them.
Value SequenceCache::atHead(function_ref<Value()> build) {
  const OpBuilder::InsertionGuard guard(b);
  const Location saved = std::exchange(where, entry.getLoc());
  b.setInsertionPointAfter(head);
  Value value = build();
  head = value.getDefiningOp();
  where = saved;
  return value;
}

Value SequenceCache::positions() {
  if (!tokenPositions)
    tokenPositions = atHead([&] {
      const int64_t shape[] = {sequences, perCall};
      auto type = RankedTensorType::get(shape, b.getF32Type());
      Value token = IotaOp::create(b, where, type, b.getI64ArrayAttr(shape), b.getI64IntegerAttr(1),
                                   TypeAttr::get(b.getF32Type()), UnitAttr());
      return AddOp::create(b, where, token, spread(begin, shape, 0)).getResult();
    });
  return tokenPositions;
}

FailureOr<SequenceCache::Kept *> SequenceCache::state(StringRef what, RankedTensorType type) {
  auto model = entry->getParentOfType<ModelOp>();
  const std::string name = ("cache." + Twine(current) + "." + what).str();
  auto state = model.lookupSymbol<StateOp>(name);
  if (!state) {
    OpBuilder before(*model.getBody().getOps<EntryOp>().begin());
    state = StateOp::create(before, where, before.getStringAttr(name),
                            before.getI64ArrayAttr(type.getShape()),
                            TypeAttr::get(type.getElementType()),
                            InitAttr::get(entry.getContext(), "zeros", {}), StringAttr(),
                            Attribute(), StringAttr(),
                            VariableRoleAttr::get(entry.getContext(), VariableRole::cache));
  } else if (state.getRole() != VariableRole::cache) {
    return emitError(where) << "would keep what it needs in @" << name << ", which the model has";
  } else if (state.getBoundType() != type) {
    return emitError(where) << "keeps a value of type " << type << " in calls of " << perCall
                            << " tokens, and of type " << state.getBoundType()
                            << " in others; expected one that does not depend on their number";
  }
  Value old = UseOp::create(b, where, type, name);
  Kept *made = &(kept[what.str()] = {state, old, currentDim});
  return made;
}

FailureOr<Value> SequenceCache::earlier(StringRef what, Value initial) {
  const RankedTensorType type = build::typeOf(initial);
  FailureOr<Kept *> found = state(what, type);
  if (failed(found))
    return failure();
  Value first = compare(spread(begin, type.getShape(), currentDim), "le", 0);
  return SelectOp::create(b, where, first, initial, (*found)->old).getResult();
}

void SequenceCache::keep(StringRef what, Value next) { write(kept.at(what.str()), next, true); }

void SequenceCache::write(Kept &value, Value next, bool masks) {
  if (masks) {
    Value active =
        compare(spread(position, build::shapeOf(next), value.dim), "ge", 0);
    next = SelectOp::create(b, where, active, next, value.old);
  }
  updates.emplace_back(value.state, next);
}

const SequenceCache::Ring &SequenceCache::ring(int64_t reach) {
  // A call writes all of its tokens before the first of them reads.
  const int64_t slots = std::min(context, reach + longest - 1);
  Ring &ring = rings[slots];
  if (ring.slots)
    return ring;
  ring.slots = slots;
  const int64_t shape[] = {sequences, slots};
  ring.position = atHead([&] {
    auto type = RankedTensorType::get(shape, b.getF32Type());
    Value slot = IotaOp::create(b, where, type, b.getI64ArrayAttr(shape), b.getI64IntegerAttr(1),
                                TypeAttr::get(b.getF32Type()), UnitAttr());
    if (slots == context) // never used twice
      return slot;
    // The last position that is the slot's number modulo `slots`.
    Value last = AddOp::create(b, where, spread(begin, shape, 0),
                               number(shape, static_cast<double>(perCall - 1)));
    Value size = number(shape, static_cast<double>(slots));
    Value ahead = SubOp::create(b, where, last, slot);
    Value rounds =
        whole(DivOp::create(b, where, MaxOp::create(b, where, ahead, number(shape, 0)), size));
    Value back = SubOp::create(b, where, ahead, MulOp::create(b, where, rounds, size));
    back = SelectOp::create(b, where, compare(back, "lt", 0), AddOp::create(b, where, back, size),
                            back); // the quotient may be rounded up
    Value latest = SubOp::create(b, where, last, back);
    return SelectOp::create(b, where, compare(ahead, "lt", 0), number(shape, -1), latest)
        .getResult();
  });
  ring.token = atHead([&] {
    Value none = number(shape, -1);
    Value token = SubOp::create(b, where, ring.position, spread(begin, shape, 0));
    token = SelectOp::create(b, where, compare(token, "lt", static_cast<double>(perCall)), token,
                             none);
    token = MaxOp::create(b, where, token, none);
    return SelectOp::create(b, where, compare(spread(position, shape, 0), "ge", 0), token, none)
        .getResult();
  });
  return ring;
}

FailureOr<Value> SequenceCache::remember(StringRef what, Value rows, const Ring &ring) {
  ArrayRef<int64_t> from = build::shapeOf(rows);
  const int64_t heads = from[1], width = from[3];
  const int64_t shape[] = {sequences, heads, ring.slots, width};
  FailureOr<Kept *> found = state(what, build::typeOf(rows).clone(shape));
  if (failed(found))
    return failure();
  auto inSlots = [&](Value numbers, ArrayRef<int64_t> to) { // [B, slots]
    SmallVector<int64_t> aligned = {sequences, 1, ring.slots};
    if (to.size() > 3)
      aligned.push_back(1);
    return build::broadcast(b, where, build::reshape(b, where, numbers, aligned), to);
  };
  Value fresh;
  if (perCall == 1) {
    fresh = build::broadcast(b, where, rows, shape);
  } else {
    // Rows by their numbers among those of all sequences and heads.
    const int64_t count = sequences * heads * perCall;
    constexpr int64_t kExact = 1 << 24; // whole numbers below it, in f32
    if (count >= kExact)
      return emitError(where) << "would keep " << count << " rows of a call; expected fewer than "
                              << kExact;
    const int64_t numbers[] = {sequences, heads, ring.slots};
    const int64_t flat[] = {sequences * heads};
    Value own = IotaOp::create(b, where, RankedTensorType::get(flat, b.getF32Type()),
                               b.getI64ArrayAttr(flat), b.getI64IntegerAttr(0),
                               TypeAttr::get(b.getF32Type()), UnitAttr());
    own = build::scale(b, where, own, static_cast<double>(perCall));
    own = build::broadcast(b, where, build::reshape(b, where, own, {sequences, heads, 1}), numbers);
    Value token = MaxOp::create(b, where, inSlots(ring.token, numbers), number(numbers, 0));
    Value id = build::cast(b, where, AddOp::create(b, where, own, token), b.getI32Type());
    fresh = EmbeddingOp::create(b, where, id, build::reshape(b, where, rows, {count, width}));
  }
  Value isNew = compare(inSlots(ring.token, shape), "ge", 0);
  Value all = SelectOp::create(b, where, isNew, fresh, (*found)->old);
  write(**found, all, /*masks=*/false);
  return all;
}

void SequenceCache::finish() {
  ReturnOp end = entry.getReturn();
  SmallVector<Value> values(end.getValues());
  SmallVector<Attribute> updated(end.getUpdated().begin(), end.getUpdated().end());
  for (auto &[state, value] : updates) {
    updated.push_back(FlatSymbolRefAttr::get(state.getSymNameAttr()));
    values.push_back(value);
  }
  end.getValuesMutable().assign(values);
  end.setUpdatedAttr(ArrayAttr::get(entry.getContext(), updated));
}

} // namespace hydra
