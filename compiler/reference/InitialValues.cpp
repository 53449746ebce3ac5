// Starting values of parameters and state.
#include "compiler/reference/Interpreter.h"

#include "dialects/hydra/NumberFormats.h"
#include "runtime/support/Error.h"
#include "runtime/support/Initializers.h"
#include "runtime/support/Int4Groups.h"
#include "runtime/support/Int8Rows.h"
#include "runtime/support/SplitFloat.h"

#include <cmath>

using namespace mlir;

namespace hydra {

/// The runtime's description of an initialiser for a tensor of `elements`.
static FailureOr<support::Initializer> initializer(Operation *op, InitAttr init, int64_t elements) {
  const InitKind kind = init.getKind();
  if (kind != InitKind::shuffle &&
      llvm::any_of(init.getArgs(), [](Attribute a) { return !isRealOrExpr(a) || hasExpr(a); }))
    return op->emitOpError("has an initialiser that is not bound to numbers");
  auto argument = [&](unsigned i) { return realValue(init.getArgs()[i]); };
  switch (kind) {
  case InitKind::zeros:
    return support::Initializer::constant(0.0);
  case InitKind::ones:
    return support::Initializer::constant(1.0);
  case InitKind::constant:
    return support::Initializer::constant(argument(0));
  case InitKind::normal:
    return support::Initializer::normal(argument(0));
  case InitKind::trunc_normal:
    return support::Initializer::truncNormal(argument(0), argument(1));
  case InitKind::uniform:
    return support::Initializer::uniform(argument(0));
  case InitKind::shuffle:
    auto values = shuffledValues(init, elements, [&] { return op->emitOpError(); });
    if (failed(values))
      return failure();
    return support::Initializer::shuffle(std::move(*values));
  }
  llvm_unreachable("an initialiser");
}

/// The type in which numbers of a variable are drawn: of one in two halves f32.
static Type drawnType(Operation *variable) {
  auto param = dyn_cast<ParamOp>(variable);
  return param && (restOf(param) || isHeldAsIntegers(param.getDtype()))
             ? Float32Type::get(variable->getContext())
             : variable->getAttrOfType<TypeAttr>("dtype").getValue();
}

FailureOr<TensorMap> initialValues(ModelOp model, uint64_t seed) {
  TensorMap values;
  // Drawn from a stream of the name `stream`.
  auto initialize = [&](Operation *op, StringRef name, StringRef stream, RankedTensorType type,
                        InitAttr init) -> LogicalResult {
    FailureOr<support::Initializer> description = initializer(op, init, type.getNumElements());
    if (failed(description))
      return failure();
    RefTensor &tensor = values[name] = RefTensor(type.getShape());
    try {
      support::fill(*description, seed, stream, tensor.data);
    } catch (const support::Error &error) {
      return op->emitOpError() << error.what();
    }
    roundTo(tensor, type.getElementType());
    return success();
  };
  for (Operation &op : model.getBody().front()) {
    auto state = dyn_cast<StateOp>(op);
    if (FlatUnitAttr unit = isa<ParamOp, StateOp>(op) ? unitOf(&op) : FlatUnitAttr()) {
      if (state && state.getRole() == VariableRole::rest)
        continue;
      const bool follows = !state || state.getRole() == VariableRole::copy;
      for (MemberAttr member : unit.getMembers()) {
        const std::string name = memberName(&op, member);
        const auto type = RankedTensorType::get(member.getShape(), drawnType(&op));
        if (failed(initialize(&op, name, follows ? member.getName().getValue() : StringRef(name),
                              type, follows ? member.getInit() : state.getInit())))
          return failure();
      }
    } else if (auto param = dyn_cast<ParamOp>(op)) {
      const auto type = RankedTensorType::get(intList(param.getShape()), drawnType(param));
      if (failed(initialize(param, param.getSymName(), param.getSymName(), type, param.getInit())))
        return failure();
    } else if (state && state.getRole() != VariableRole::scale &&
               state.getRole() != VariableRole::rest) {
      if (failed(initialize(state, state.getSymName(),
                            state.getRole() == VariableRole::copy ? *state.getOwner()
                                                                  : state.getSymName(),
                            state.getBoundType(), state.getInit())))
        return failure();
    }
  }
  toHeldForm(model, values);
  return values;
}

/// Parameters in two halves, of units their members: the name of each and that of its rest.
static SmallVector<std::pair<std::string, std::string>> halvedNames(ModelOp model) {
  SmallVector<std::pair<std::string, std::string>> names;
  for (auto param : model.getBody().getOps<ParamOp>()) {
    StateOp rest = restOf(param);
    if (!rest)
      continue;
    if (!param.getUnit())
      names.emplace_back(param.getSymName().str(), rest.getSymName().str());
    else
      for (MemberAttr member : param.getUnitAttr().getMembers())
        names.emplace_back(memberName(param, member), memberName(rest, member));
  }
  return names;
}

static void splitMasters(ModelOp model, TensorMap &values) {
  for (const auto &[name, restName] : halvedNames(model)) {
    auto given = values.find(name);
    if (given == values.end() || values.contains(restName))
      continue;
    RefTensor rests(given->second.shape);
    for (auto [x, left] : llvm::zip(given->second.data, rests.data)) {
      const support::SplitFloat halves = support::splitFloat(static_cast<float>(x));
      x = support::bf16ToFloat(halves.high);
      left = halves.rest;
    }
    values[restName] = std::move(rests);
  }
}

void toGivenForm(ModelOp model, TensorMap &values) {
  for (const auto &[name, restName] : halvedNames(model)) {
    auto high = values.find(name);
    const auto rest = values.find(restName);
    if (high == values.end() || rest == values.end())
      continue;
    for (auto [x, left] : llvm::zip(high->second.data, rest->second.data))
      x = support::joinFloat({support::bf16FromDouble(x), static_cast<int16_t>(std::lround(left))});
    values.erase(restName);
  }
}

/// Numbers that share a scale, as many as there are for each of `scales`: rounds each such group
/// and writes its bytes.
static RefTensor roundGroups(
    const RefTensor &numbers, RankedTensorType bytes, RefTensor &scales,
    llvm::function_ref<double(std::span<const float> numbers, std::span<int8_t> bytes)> round) {
  RefTensor held(bytes.getShape());
  const int64_t each = numbers.size() / scales.size(), ofGroup = held.size() / scales.size();
  std::vector<float> group(each);
  std::vector<int8_t> rounded(ofGroup);
  for (int64_t i = 0; i < scales.size(); ++i) {
    llvm::copy(ArrayRef(numbers.data).slice(i * each, each), group.begin());
    scales.data[i] = round(group, rounded);
    llvm::copy(rounded, held.data.begin() + i * ofGroup);
  }
  return held;
}

static void roundToIntegers(ModelOp model, TensorMap &values) {
  for (auto param : model.getBody().getOps<ParamOp>()) {
    StateOp scale = isHeldAsIntegers(param.getDtype()) ? scaleOf(param) : StateOp();
    auto given = values.find(param.getSymName());
    if (!scale || given == values.end() || values.contains(scale.getSymName()))
      continue;
    RefTensor scales(scale.getBoundType().getShape());
    const bool packed = isInt4(param.getDtype());
    given->second =
        roundGroups(given->second, param.getBoundType(), scales,
                    [&](std::span<const float> numbers, std::span<int8_t> bytes) -> double {
                      return packed ? support::bf16ToFloat(support::quantizeGroup(numbers, bytes))
                                    : support::quantizeRow(numbers, bytes);
                    });
    values[scale.getSymName()] = std::move(scales);
  }
}

void toHeldForm(ModelOp model, TensorMap &values) {
  roundToIntegers(model, values);
  splitMasters(model, values);
}

/// The units among the variables of a model, and state of them.
static SmallVector<Operation *> unitsOf(ModelOp model) {
  SmallVector<Operation *> units;
  for (Operation &op : model.getBody().front())
    if (isa<ParamOp, StateOp>(op) && unitOf(&op))
      units.push_back(&op);
  return units;
}

void joinMembers(ModelOp model, TensorMap &values) {
  for (Operation *variable : unitsOf(model)) {
    FlatUnitAttr unit = unitOf(variable);
    SmallVector<int64_t> shape = intList(variable->getAttrOfType<ArrayAttr>("shape"));
    shape[0] *= unit.getPieces();
    RefTensor whole(shape);
    bool all = true;
    for (MemberAttr member : unit.getMembers()) {
      auto it = values.find(memberName(variable, member));
      all = all && it != values.end();
      if (all)
        llvm::copy(it->second.data, whole.data.begin() + member.getOffset());
    }
    if (all)
      values[SymbolTable::getSymbolName(variable).getValue()] = std::move(whole);
  }
}

void takeMembers(ModelOp model, TensorMap &values) {
  for (Operation *variable : unitsOf(model)) {
    auto it = values.find(SymbolTable::getSymbolName(variable).getValue());
    if (it == values.end())
      continue;
    const RefTensor whole = std::move(it->second);
    values.erase(it);
    for (MemberAttr member : unitOf(variable).getMembers()) {
      RefTensor tensor(member.getShape());
      std::copy_n(whole.data.begin() + member.getOffset(), tensor.data.size(), tensor.data.begin());
      values[memberName(variable, member)] = std::move(tensor);
    }
  }
}

} // namespace hydra
