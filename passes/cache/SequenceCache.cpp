// State of sequences: read at a call's begin, written at its end.
#include "passes/cache/SequenceCache.h"

using namespace mlir;

namespace hydra {

/// What it makes says so, for reports.
static constexpr StringLiteral kPass = "hydra-cache";

/// The number of tokens in the programs' first argument, tokens [B, C].
static ArrayRef<int64_t> tokensShape(EntryOp entry) {
  return build::shapeOf(entry.getBody().getArgument(0));
}

SequenceCache::SequenceCache(EntryOp entry, int64_t context, int64_t longest, Type narrow)
    : entry(entry), context(context), longest(longest), sequences(tokensShape(entry)[0]),
      perCall(tokensShape(entry)[1]), format(narrow),
      b(OpBuilder::atBlockBegin(&entry.getBody().front())), where(madeBy(kPass, entry.getLoc())) {
  given = entry.addArgument(kPosition, RankedTensorType::get({sequences}, b.getF32Type()), where,
                            b.getUnitAttr());
  begin = MaxOp::create(b, where, given, number({sequences}, 0));
  head = begin.getDefiningOp();
}

void SequenceCache::startAt(Operation *op, unsigned number, int64_t dim) {
  b.setInsertionPoint(op);
  where = madeBy(kPass, op->getLoc());
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

Value SequenceCache::compare(Value a, Predicate is, double value) {
  return CompareOp::create(b, where, a, build::constant(b, where, a.getType(), value), is);
}

/// Builds what all operations share in front of them.
Value SequenceCache::atHead(function_ref<Value()> build) {
  const OpBuilder::InsertionGuard guard(b);
  const Location saved = std::exchange(where, madeBy(kPass, entry.getLoc()));
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
    state = StateOp::create(
        before, where, before.getStringAttr(name), before.getI64ArrayAttr(type.getShape()),
        TypeAttr::get(type.getElementType()),
        InitAttr::get(entry.getContext(), InitKind::zeros, {}), StringAttr(), Attribute(),
        StringAttr(), VariableRoleAttr::get(entry.getContext(), VariableRole::cache));
  } else if (state.getRole() != VariableRole::cache) {
    return emitError(where) << "would keep what it needs in @" << name << ", which the model has";
  } else if (state.getBoundType() != type) {
    return emitError(where) << "keeps a value of type " << type << " in calls of " << perCall
                            << " tokens, and of type " << state.getBoundType()
                            << " in others; expected one that does not depend on their number";
  }
  Value old = UseOp::create(b, where, type, name);
  Kept *made = &(states[what.str()] = {state, old, currentDim});
  return made;
}

FailureOr<Value> SequenceCache::earlier(StringRef what, Value initial) {
  const RankedTensorType type = build::typeOf(initial);
  FailureOr<Kept *> found = state(what, type);
  if (failed(found))
    return failure();
  Value first = compare(spread(begin, type.getShape(), currentDim), Predicate::le, 0);
  return SelectOp::create(b, where, first, initial, (*found)->old).getResult();
}

void SequenceCache::keep(StringRef what, Value next) {
  const Kept &value = states.at(what.str());
  Value active = compare(spread(given, build::shapeOf(next), value.dim), Predicate::ge, 0);
  updates.emplace_back(value.state, SelectOp::create(b, where, active, next, value.old));
}

FailureOr<Value> SequenceCache::kept(StringRef what, RankedTensorType type) {
  FailureOr<Kept *> found = state(what, type);
  if (failed(found))
    return failure();
  return (*found)->old;
}

void SequenceCache::replace(StringRef what, Value next) {
  updates.emplace_back(states.at(what.str()).state, next);
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
