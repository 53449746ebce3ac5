// hydra.param, hydra.state and hydra.stack: what a model keeps from step to step.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/PackedNumbers.h"

#include <cmath>

using namespace mlir;

namespace hydra {

static Type defaultElementType(Builder &b) { return b.getF32Type(); }

static ParseResult parseVariable(OpAsmParser &parser, OperationState &state) {
  StringAttr name, group;
  ArrayAttr shape;
  InitAttr init;
  Type dtype;
  if (parser.parseSymbolName(name) || parseExprList(parser, shape))
    return failure();
  OptionalParseResult typed = parser.parseOptionalType(dtype);
  if (typed.has_value() && failed(*typed))
    return failure();
  if (!dtype)
    dtype = defaultElementType(parser.getBuilder());
  if (parser.parseKeyword("init") || parser.parseEqual() || parseInit(parser, init))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("group"))) {
    if (parser.parseEqual() || parser.parseSymbolName(group))
      return failure();
    state.addAttribute("group", group);
  }
  if (succeeded(parser.parseOptionalKeyword("when"))) {
    Attribute condition;
    if (parseExpr(parser, condition))
      return failure();
    state.addAttribute("condition", condition);
  }
  state.addAttribute("sym_name", name);
  state.addAttribute("shape", shape);
  state.addAttribute("dtype", TypeAttr::get(dtype));
  state.addAttribute("init", init);
  return success();
}

/// Refuses a part of a declaration that is not in its place.
static ParseResult parseVariableEnd(OpAsmParser &parser, StringRef order) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (failed(parser.parseOptionalKeyword(&word, {"f32", "bf16", "f16", "i32", "init", "group",
                                                 "when", "from", "transposed", "frozen"})))
    return success();
  return parser.emitError(loc) << "'" << word
                               << "' is not in its place; expected, in this order: " << order;
}

template <typename Op> static void printVariable(OpAsmPrinter &p, Op op) {
  p << ' ';
  p.printSymbolName(op.getSymName());
  p << ' ';
  printExprList(p, op.getShape());
  if (!op.getDtype().isF32())
    p << ' ' << op.getDtype();
  p << " init = ";
  printInit(p, op.getInit());
  if (op.getGroupAttr()) {
    p << " group = ";
    p.printSymbolName(*op.getGroup());
  }
  if (op.getConditionAttr()) {
    p << " when ";
    printExpr(p, op.getConditionAttr());
  }
}

/// Whether it is state that may have 8 bits: what an optimizer keeps for its update alone, and
/// operands of matmuls.
static bool isEightBitState(Operation *op) {
  auto state = dyn_cast<StateOp>(op);
  return state && isEightBitFloat(state.getDtype()) &&
         (state.getRole() == VariableRole::moment || state.getRole() == VariableRole::derived);
}

/// Whether it is what a parameter in two halves leaves out.
static bool isRest(Operation *op) {
  auto state = dyn_cast<StateOp>(op);
  return state && isMasterRest(state.getDtype()) && state.getRole() == VariableRole::rest;
}

/// Whether it is a parameter that is held as integers, of which a state has the scales.
static bool isIntegerWeight(Operation *op) {
  auto param = dyn_cast<ParamOp>(op);
  return param && isHeldAsIntegers(param.getDtype()) && scaleOf(param);
}

/// Whether elements can begin so, as far as it is bound.
static LogicalResult verifyInit(Operation *op, InitAttr init, Type element) {
  switch (init.getKind()) {
  case InitKind::constant:
    if (Attribute value = init.getArgs()[0];
        !isa<ExprAttr>(value) && !isNumberOf(element, realValue(value)))
      return op->emitOpError() << "begins with " << numberText(realValue(value))
                               << ", which is no number of " << element;
    return success();
  case InitKind::normal:
  case InitKind::trunc_normal:
  case InitKind::uniform:
    if (!isa<FloatType>(element))
      return op->emitOpError() << "begins with random numbers that are not whole; elements of "
                               << element << " begin with zeros, ones, constant or shuffle";
    return success();
  case InitKind::zeros:
  case InitKind::ones:
  case InitKind::shuffle: // numbers of its own, when they are drawn
    return success();
  }
  llvm_unreachable("an initialiser");
}

template <typename Op> static LogicalResult verifyVariable(Op op) {
  if (failed(verifyName(op, op.getSymName())))
    return failure();
  if (!isa<ModelOp, StackOp>(op->getParentOp()))
    return op.emitOpError("belongs into a model or a stack");
  if (op.getSymName() == "__metadata__")
    return op.emitOpError("has a name that files of tensors keep for themselves");
  Type dtype = op.getDtype();
  if (!isModelElement(dtype) && !isEightBitState(op) && !isIntegerWeight(op) && !isRest(op))
    return op.emitOpError() << "has elements of " << dtype << "; expected " << kModelElements;
  if (isa<ParamOp>(op) && !isa<FloatType>(dtype) && !isIntegerWeight(op))
    return op.emitOpError() << "has elements of " << dtype << "; what is trained has "
                            << kModelFloats << " (else use hydra.state)";
  if (isModelElement(dtype) && failed(verifyInit(op, op.getInit(), dtype)))
    return failure();
  SmallVector<int64_t> known;
  for (Attribute d : op.getShape()) {
    if (!isIntOrExpr(d))
      return op.emitOpError("has a dimension that is not an integer");
    if (!isa<ExprAttr>(d))
      known.push_back(intValue(d));
  }
  if (std::string problem = checkShape(known); !problem.empty())
    return op.emitOpError() << "shape " << problem;
  // A plan holds a number for each.
  constexpr int64_t kMostShuffled = 1 << 20;
  if (op.getInit().getKind() == InitKind::shuffle && RefTensor::elements(known) > kMostShuffled)
    return op.emitOpError() << "shuffles " << RefTensor::elements(known)
                            << " numbers; expected at most " << kMostShuffled;
  return success();
}

template <typename Op> static RankedTensorType boundTypeOf(Op op) {
  if (hasExpr(op.getShape()))
    return RankedTensorType();
  SmallVector<int64_t> shape = intList(op.getShape());
  if (!isInt4(op.getDtype()))
    return RankedTensorType::get(shape, op.getDtype());
  shape.back() /= 2; // bytes
  return RankedTensorType::get(shape, IntegerType::get(op.getContext(), 8));
}

FailureOr<std::vector<double>> shuffledValues(InitAttr init, int64_t elements,
                                              llvm::function_ref<InFlightDiagnostic()> emitError) {
  std::vector<double> values(elements);
  Environment environment;
  for (int64_t i = 0; i < elements; ++i) {
    environment.values[kIndexSymbol] = Builder(init.getContext()).getI64IntegerAttr(i);
    FailureOr<Attribute> value = evaluate(init.getArgs()[0], environment, emitError);
    if (failed(value))
      return failure();
    if (isa<ExprAttr>(*value) || !isRealOrExpr(*value) ||
        !std::isfinite(static_cast<float>(values[i] = realValue(*value))))
      return emitError() << "shuffles what is no finite number of f32 at index " << i;
  }
  return values;
}

ParseResult ParamOp::parse(OpAsmParser &p, OperationState &s) {
  if (parseVariable(p, s))
    return failure();
  if (succeeded(p.parseOptionalKeyword("from"))) {
    StringAttr origin;
    if (p.parseAttribute(origin))
      return failure();
    s.addAttribute("origin", origin);
    if (succeeded(p.parseOptionalKeyword("transposed")))
      s.addAttribute("transposed", p.getBuilder().getUnitAttr());
  }
  if (succeeded(p.parseOptionalKeyword("frozen")))
    s.addAttribute("frozen", p.getBuilder().getUnitAttr());
  if (succeeded(p.parseOptionalKeyword("in"))) {
    StringAttr element;
    if (p.parseAttribute(element))
      return failure();
    s.addAttribute("element", element);
  }
  if (succeeded(p.parseOptionalKeyword("unit"))) {
    FlatUnitAttr unit;
    if (p.parseEqual() || p.parseAttribute(unit))
      return failure();
    s.addAttribute("unit", unit);
  }
  if (succeeded(p.parseOptionalKeyword("adapter"))) {
    AdapterAttr adapter;
    if (p.parseEqual() || p.parseAttribute(adapter))
      return failure();
    s.addAttribute("adapter", adapter);
  }
  return parseVariableEnd(p, "shape, element type, init, group, when, from, transposed, frozen");
}
void ParamOp::print(OpAsmPrinter &p) {
  printVariable(p, *this);
  if (getOrigin()) {
    p << " from " << getOriginAttr();
    if (getTransposed())
      p << " transposed";
  }
  if (getFrozen())
    p << " frozen";
  if (getElement())
    p << " in " << getElementAttr();
  if (getUnit())
    p << " unit = " << getUnitAttr();
  if (getAdapter())
    p << " adapter = " << getAdapterAttr();
}

/// Whether the members lie in the vector, one behind the other.
static LogicalResult verifyUnit(ParamOp op, FlatUnitAttr unit) {
  if (hasExpr(op.getShape()) || op.getShape().size() != 2)
    return op.emitOpError("is a unit; expected rows of some elements");
  if (unit.getPieces() < 1 || unit.getMembers().empty())
    return op.emitOpError() << "is a unit of " << unit.getMembers().size() << " members in "
                            << unit.getPieces() << " pieces; expected at least 1";
  const int64_t elements = productOf({op.getBoundType().getNumElements(), unit.getPieces()});
  int64_t end = 0;
  for (MemberAttr member : unit.getMembers()) {
    if (std::string problem = checkShape(member.getShape()); !problem.empty())
      return op.emitOpError() << "member '" << member.getName().getValue() << "': shape "
                              << problem;
    if (member.getOffset() < end || member.getOffset() > elements - member.elements())
      return op.emitOpError() << "member '" << member.getName().getValue() << "' has the elements "
                              << member.getOffset() << " to "
                              << member.getOffset() + member.elements() << ", of " << elements
                              << "; the one before ends at " << end;
    end = member.getOffset() + member.elements();
  }
  return success();
}

/// Whether the name of its tensor elsewhere is one for each element of the stack, and perhaps of
/// the first dimension.
static LogicalResult verifyOrigin(ParamOp op) {
  StringRef name = op.getOrigin().value_or("");
  if (op.getOrigin() && name.empty())
    return op.emitOpError("is from a tensor without a name");
  if (op.getTransposed() && (!op.getOrigin() || op.getShape().size() != 2))
    return op.emitOpError("is transposed; expected the name of a tensor, and 2 dimensions");
  const auto braces = llvm::count_if(name, [](char c) { return c == '{' || c == '}'; });
  const size_t layers = name.count(kLayerPlaceholder), rows = name.count(kRowPlaceholder);
  if (braces != 2 * static_cast<ptrdiff_t>(layers + rows))
    return op.emitOpError() << "is from \"" << name << "\"; expected no braces but "
                            << kLayerPlaceholder << " and " << kRowPlaceholder;
  if (rows > 1 || (rows == 1 && (op.getShape().size() < 2 || op.getTransposed())))
    return op.emitOpError() << "is from \"" << name << "\"; expected " << kRowPlaceholder
                            << " once, of at least 2 dimensions that are not transposed";
  const bool inStack = isa<StackOp>(op->getParentOp());
  if (op.getOrigin() && inStack != (layers == 1))
    return op.emitOpError() << "is from \"" << name << "\"; expected " << kLayerPlaceholder
                            << (inStack ? " once, as it is in a stack" : " in stacks only");
  return success();
}

LogicalResult ParamOp::verify() {
  if (failed(verifyVariable(*this)) || failed(verifyOrigin(*this)))
    return failure();
  return getUnit() ? verifyUnit(*this, *getUnit()) : success();
}
RankedTensorType ParamOp::getBoundType() { return boundTypeOf(*this); }

ParseResult StateOp::parse(OpAsmParser &p, OperationState &s) {
  if (parseVariable(p, s))
    return failure();
  StringAttr owner;
  if (succeeded(p.parseOptionalKeyword("of"))) {
    if (p.parseSymbolName(owner))
      return failure();
    s.addAttribute("owner", owner);
  }
  if (owner ? failed(p.parseKeyword("as")) : failed(p.parseOptionalKeyword("as")))
    return owner ? failure() : parseVariableEnd(p, "shape, element type, init, when");
  StringRef word;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseKeyword(&word))
    return failure();
  std::optional<VariableRole> role = symbolizeVariableRole(word);
  if (!role)
    return p.emitError(loc) << "unknown role '" << word << "' of state";
  s.addAttribute("role", VariableRoleAttr::get(p.getContext(), *role));
  return success();
}
void StateOp::print(OpAsmPrinter &p) {
  printVariable(p, *this);
  if (getOwner()) {
    p << " of ";
    p.printSymbolName(*getOwner());
  }
  if (getRole() != VariableRole::state)
    p << " as " << stringifyVariableRole(getRole());
}

/// Of a parameter of i4: a number of bf16 for each group of a row.
static LogicalResult verifyGroupScales(StateOp scale, ParamOp param) {
  if (hasExpr(param.getShape()) || hasExpr(scale.getShape()))
    return scale.emitOpError("is a scale of a matrix of i4 whose shape is not bound");
  const SmallVector<int64_t> shape = intList(param.getShape());
  if (shape[1] % support::kInt4Group != 0 || !scale.getDtype().isBF16() ||
      intList(scale.getShape()) != groupScaleShape(shape))
    return scale.emitOpError() << "is a scale of @" << *scale.getOwner()
                               << " of another shape or type; expected bf16, one for each "
                               << support::kInt4Group << " numbers of its rows";
  return success();
}

LogicalResult StateOp::verify() {
  if (failed(verifyVariable(*this)))
    return failure();
  StringRef word = stringifyVariableRole(getRole());
  Operation *owner =
      getOwner() ? SymbolTable::lookupSymbolIn((*this)->getParentOp(), *getOwner()) : nullptr;
  auto shapeOf = [](Operation *variable) { return variable->getAttrOfType<ArrayAttr>("shape"); };
  switch (getRole()) {
  case VariableRole::parameter:
    return emitOpError("is a parameter; expected hydra.param");
  case VariableRole::state:
  case VariableRole::update_count:
  case VariableRole::step_sum:
  case VariableRole::loss_scaling:
  case VariableRole::cache:
  case VariableRole::amax_history:
    if (getOwner())
      return emitOpError() << "belongs to @" << *getOwner() << " as " << word
                           << ", which has no owner";
    if (getRole() == VariableRole::update_count &&
        (!getShape().empty() || !getDtype().isInteger(32)))
      return emitOpError("counts updates; expected one number of i32");
    if (getRole() == VariableRole::amax_history && (getShape().size() != 2 || !getDtype().isF32()))
      return emitOpError("remembers largest magnitudes; expected [operands, steps] of f32");
    return success();
  case VariableRole::moment:
    if (!isa_and_nonnull<ParamOp>(owner))
      return emitOpError() << "is a moment of no parameter";
    return success();
  case VariableRole::gradient:
    if (!isa_and_nonnull<ParamOp>(owner) || shapeOf(owner) != getShape())
      return emitOpError() << "is a gradient of no parameter of this shape";
    return success();
  case VariableRole::gradient_part: // whole, also where its owner is cut
    if (!isa_and_nonnull<ParamOp>(owner) || (shapeOf(owner) != getShape() && !unitOf(*this)))
      return emitOpError() << "is a part of the gradient of no parameter of this shape";
    return success();
  case VariableRole::derived:
    if (getOwner() && !isa_and_nonnull<ParamOp>(owner))
      return emitOpError() << "is made of @" << *getOwner() << ", which is no parameter";
    return success();
  case VariableRole::average:
    if (!isa_and_nonnull<ParamOp>(owner) || shapeOf(owner) != getShape())
      return emitOpError() << "is an average of no parameter of this shape";
    return success();
  case VariableRole::scale: {
    auto param = dyn_cast_or_null<ParamOp>(owner);
    if (!param || !isHeldAsIntegers(param.getDtype()) || param.getShape().size() != 2 ||
        param.getUnit())
      return emitOpError() << "is a scale of no matrix of i8";
    if (isInt4(param.getDtype()))
      return verifyGroupScales(*this, param);
    if (!getDtype().isF32() || getShape().size() != 1 || getShape()[0] != param.getShape()[0])
      return emitOpError() << "is a scale of @" << *getOwner() << " of another shape or type; "
                           << "expected f32, one for each of its rows";
    return success();
  }
  case VariableRole::rest:
    if (auto param = dyn_cast_or_null<ParamOp>(owner);
        !param || !param.getDtype().isBF16() || param.getShape() != getShape())
      return emitOpError() << "is the rest of no parameter of bf16 of this shape";
    return success();
  case VariableRole::copy:
    if (!isa_and_nonnull<ParamOp, StateOp>(owner) ||
        (shapeOf(owner) != getShape() && !unitOf(*this)))
      return emitOpError() << "is a copy of no parameter or state of this shape";
    if (Type type = owner->getAttrOfType<TypeAttr>("dtype").getValue();
        type != getDtype() && !(isa<FloatType>(getDtype()) && isa<FloatType>(type)))
      return emitOpError() << "is a copy of @" << *getOwner() << " in " << getDtype()
                           << "; expected " << kModelFloats;
    return success();
  }
  llvm_unreachable("role of state");
}
RankedTensorType StateOp::getBoundType() { return boundTypeOf(*this); }
int64_t MemberAttr::elements() const { return productOf(getShape()); }

FlatUnitAttr unitOf(Operation *variable) {
  if (auto param = dyn_cast<ParamOp>(variable))
    return param.getUnitAttr();
  auto state = cast<StateOp>(variable);
  auto owner = state.getOwner() ? dyn_cast_or_null<ParamOp>(SymbolTable::lookupSymbolIn(
                                      state->getParentOp(), *state.getOwner()))
                                : ParamOp();
  FlatUnitAttr unit = owner ? owner.getUnitAttr() : FlatUnitAttr();
  if (!unit || owner.getShape() == state.getShape())
    return unit;
  // A copy may be whole where its owner is cut, and a part of a gradient is.
  const int64_t rows = state.getBoundType().getDimSize(0);
  return rows == owner.getBoundType().getDimSize(0) * unit.getPieces() ? unit.withPieces(1)
                                                                       : FlatUnitAttr();
}

std::string memberName(Operation *variable, MemberAttr member) {
  auto state = dyn_cast<StateOp>(variable);
  StringRef suffix = state ? state.getSymName().drop_front(state.getOwner()->size()) : StringRef();
  return (member.getName().getValue() + suffix).str();
}

/// The first state of a parameter that has the role.
static StateOp stateOf(ParamOp param, VariableRole role) {
  for (auto state : param->getBlock()->getOps<StateOp>())
    if (state.getRole() == role && state.getOwner() == param.getSymName())
      return state;
  return {};
}
StateOp scaleOf(ParamOp param) { return stateOf(param, VariableRole::scale); }
StateOp restOf(ParamOp param) { return stateOf(param, VariableRole::rest); }

bool StateOp::followsParameter() {
  return (getRole() == VariableRole::copy || getRole() == VariableRole::derived ||
          getRole() == VariableRole::scale || getRole() == VariableRole::rest) &&
         getOwner() &&
         isa<ParamOp>(SymbolTable::lookupSymbolIn((*this)->getParentOp(), *getOwner()));
}

ParseResult StackOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  Attribute count;
  Region *body = state.addRegion();
  if (parser.parseSymbolName(name) || parser.parseLSquare() || parseExpr(parser, count) ||
      parser.parseRSquare() || parseBody(parser, *body))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  state.addAttribute("sym_name", name);
  state.addAttribute("count", count);
  return success();
}
void StackOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << '[';
  printExpr(p, getCountAttr());
  p << "] ";
  p.printRegion(getBody());
}
LogicalResult StackOp::verify() {
  if (failed(verifyName(*this, getSymName())))
    return failure();
  for (Operation &op : getBody().front())
    if (!isa<ParamOp, StateOp>(op))
      return op.emitOpError("does not belong into a stack");
  return success();
}

} // namespace hydra
