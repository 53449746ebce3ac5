// Bundles become the values that they hold, while programs are bound.
#include "passes/bind/Bundles.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hydra::bundles {

static bool isBundle(Value value) { return value.getDefiningOp<BundleOp>() != nullptr; }

static void flatten(Value value, SmallVectorImpl<Value> &values) {
  auto bundle = value.getDefiningOp<BundleOp>();
  if (!bundle) {
    values.push_back(value);
    return;
  }
  for (Value field : bundle.getFields())
    flatten(field, values);
}

SmallVector<Value> flat(ValueRange values) {
  SmallVector<Value> all;
  for (Value value : values)
    flatten(value, all);
  return all;
}

Value rebuilt(OpBuilder &b, Value like, ArrayRef<Value> &values) {
  auto bundle = like.getDefiningOp<BundleOp>();
  if (!bundle) {
    Value first = values.front();
    values = values.drop_front();
    return first;
  }
  SmallVector<Value> fields;
  for (Value field : bundle.getFields())
    fields.push_back(rebuilt(b, field, values));
  return BundleOp::create(b, bundle.getLoc(), bundle.getType(), fields, bundle.getNames());
}

static bool sameFields(Value a, Value b) {
  auto x = a.getDefiningOp<BundleOp>(), y = b.getDefiningOp<BundleOp>();
  if (!x || !y)
    return !x && !y;
  return x.getNames() == y.getNames() &&
         llvm::all_of(llvm::zip(x.getFields(), y.getFields()),
                      [](auto pair) { return sameFields(std::get<0>(pair), std::get<1>(pair)); });
}

/// `a bundle of sum, count` or `no bundle`.
static std::string describe(Value value) {
  auto bundle = value.getDefiningOp<BundleOp>();
  if (!bundle)
    return "no bundle";
  auto names = llvm::map_range(bundle.getNames().getAsValueRange<StringAttr>(),
                               [](StringRef name) { return name.str(); });
  return "a bundle of " + llvm::join(names, ", ");
}

LogicalResult checkSameFields(Operation *op, Value like, Value value) {
  if (sameFields(like, value))
    return success();
  return op->emitOpError() << "yields " << describe(value) << "; expected " << describe(like);
}

LogicalResult checkNone(Operation *op) {
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (isBundle(operand))
      return op->emitOpError() << "operand " << i << " is " << describe(operand)
                               << "; expected a value";
  return success();
}

LogicalResult take(FieldOp field) {
  auto bundle = field.getBundle().getDefiningOp<BundleOp>();
  if (!bundle)
    return field.emitOpError() << "takes the field '" << field.getName()
                               << "' of what is no bundle";
  for (auto [name, value] :
       llvm::zip(bundle.getNames().getAsValueRange<StringAttr>(), bundle.getFields()))
    if (name == field.getName()) {
      field.replaceAllUsesWith(Value(value));
      field.erase();
      return success();
    }
  return field.emitOpError() << "takes the field '" << field.getName() << "' of "
                             << describe(bundle);
}

void open(ForOp loop) {
  if (llvm::none_of(loop.getOperands(), isBundle))
    return;
  Block &body = loop.getBody().front();
  const unsigned before = body.getNumArguments();
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  for (auto [i, operand] : llvm::enumerate(SmallVector<Value>(loop.getOperands()))) {
    SmallVector<Value> arguments;
    for (Value value : flat(operand))
      arguments.push_back(body.addArgument(value.getType(), body.getArgument(i).getLoc()));
    ArrayRef<Value> rest = arguments;
    body.getArgument(i).replaceAllUsesWith(rebuilt(b, operand, rest));
  }
  body.eraseArguments(0, before);
  SmallVector<Value> sequences = flat(loop.getSequences()), inits = flat(loop.getInits());
  loop.getSequencesMutable().assign(sequences);
  loop.getInitsMutable().assign(inits);
}

Operation *withFlatResults(Operation *op, ValueRange yielded) {
  if (llvm::none_of(yielded, isBundle))
    return op;
  SmallVector<Value> likes(yielded), values = flat(yielded);
  for (Region &region : op->getRegions())
    if (!region.empty()) {
      Operation *yield = region.front().getTerminator();
      yield->setOperands(flat(yield->getOperands()));
    }
  OpBuilder b(op);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addTypes(SmallVector<Type>(values.size(), AnyType::get(op->getContext())));
  state.addAttributes(op->getAttrs());
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  Operation *other = b.create(state);
  SmallVector<Value> results(other->getResults());
  ArrayRef<Value> rest = results;
  for (auto [result, like] : llvm::zip(op->getResults(), likes))
    result.replaceAllUsesWith(rebuilt(b, like, rest));
  op->erase();
  return other;
}

void eraseAll(Operation *root) {
  SmallVector<BundleOp> all;
  root->walk([&](BundleOp bundle) { all.push_back(bundle); });
  for (BundleOp bundle : llvm::reverse(all))
    bundle.erase();
}

} // namespace hydra::bundles
