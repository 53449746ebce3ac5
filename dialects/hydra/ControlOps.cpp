// What a model is written with between its operations on values: uses, repetition, choices.
#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

//===-- use ---------------------------------------------------------------------------------===//

ParseResult UseOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SmallVector<Type> types;
  if (parser.parseSymbolName(name) || parseOperandTypes(parser, 1, types))
    return failure();
  state.addAttribute("variable", FlatSymbolRefAttr::get(name));
  state.addTypes(types);
  return success();
}
void UseOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getVariable());
  printOperandTypes(p, getType());
}

void UseOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  std::string name = getVariable().str();
  if (isUnbound(getType())) // '.' and '-' mean something in arithmetic
    for (char &c : name)
      c = c == '.' || c == '-' ? '_' : c;
  setName(getValue(), name);
}

Operation *UseOp::lookup(SymbolTableCollection *symbols) {
  auto model = (*this)->getParentOfType<ModelOp>();
  if (!model)
    return nullptr;
  auto find = [&](Operation *in, FlatSymbolRefAttr name) {
    return symbols ? symbols->lookupSymbolIn(in, name.getAttr())
                   : SymbolTable::lookupSymbolIn(in, name.getAttr());
  };
  for (auto loop = (*this)->getParentOfType<ForOp>(); loop; loop = loop->getParentOfType<ForOp>())
    if (Operation *stack = find(model, loop.getStackAttr()); isa_and_nonnull<StackOp>(stack))
      if (Operation *found = find(stack, getVariableAttr()))
        return found;
  Operation *found = find(model, getVariableAttr());
  return isa_and_nonnull<ParamOp, StateOp>(found) ? found : nullptr;
}

FailureOr<RankedTensorType> UseOp::boundType() { return boundType(nullptr); }

FailureOr<RankedTensorType> UseOp::boundType(SymbolTableCollection *symbols) {
  Operation *variable = lookup(symbols);
  RankedTensorType type;
  if (auto param = dyn_cast_or_null<ParamOp>(variable))
    type = param.getBoundType();
  else if (auto state = dyn_cast_or_null<StateOp>(variable))
    type = state.getBoundType();
  if (!type)
    return emitOpError() << "parameter or state @" << getVariable()
                         << " does not exist in this configuration";
  return type;
}

//===-- for, when, yield --------------------------------------------------------------------===//

/// What an element of a stack has of a sequence `[L, ...]`; unbound if that is.
static Type rowType(Type sequence) {
  if (isUnbound(sequence))
    return sequence;
  auto type = cast<RankedTensorType>(sequence);
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
}

ParseResult ForOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr stack;
  FailureOr<size_t> results = parsedResults(parser);
  if (failed(results) || parser.parseSymbolName(stack))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  if (parseBindings(parser, "over", arguments, operands))
    return failure();
  const size_t sequences = operands.size();
  if (parseBindings(parser, "carry", arguments, operands))
    return failure();
  const size_t inits = operands.size() - sequences;
  if (*results < inits)
    return parser.emitError(loc) << "carries " << inits << " values but has " << *results
                                 << " results";
  const size_t joined = *results - inits;
  SmallVector<Type> types;
  if (parseOperandTypes(parser, operands.size() + joined, types))
    return failure();
  ArrayRef<Type> operandTypes = ArrayRef(types).take_front(operands.size());
  if (parser.resolveOperands(operands, operandTypes, loc, state.operands))
    return failure();
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    auto tensor = dyn_cast<RankedTensorType>(types[i]);
    if (i < sequences && tensor && tensor.getRank() == 0)
      return parser.emitError(loc) << "goes over " << types[i] << ", which has no rows";
    argument.type = i < sequences ? rowType(types[i]) : types[i];
  }
  Region *body = state.addRegion();
  if (parseBody(parser, *body, arguments))
    return failure();
  ForOp::ensureTerminator(*body, parser.getBuilder(), state.location);
  state.addAttribute("stack", FlatSymbolRefAttr::get(stack));
  state.addAttribute(getOperandSegmentSizesAttrName(state.name),
                     parser.getBuilder().getDenseI32ArrayAttr(
                         {static_cast<int32_t>(sequences), static_cast<int32_t>(inits)}));
  state.addTypes(ArrayRef(types).drop_front(operands.size()));
  state.addTypes(operandTypes.drop_front(sequences));
  return success();
}

void ForOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getStack());
  ValueRange arguments = getBody().getArguments();
  printBindings(p, "over", arguments.take_front(getSequences().size()), getSequences());
  printBindings(p, "carry", getCarried(), getInits());
  SmallVector<Type> types(getOperandTypes());
  llvm::append_range(types, getJoined().getTypes());
  printOperandTypes(p, types);
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

LogicalResult ForOp::verify() {
  auto model = (*this)->getParentOfType<ModelOp>();
  auto stack = model ? model.lookupSymbol<StackOp>(getStackAttr()) : StackOp();
  if (!stack)
    return emitOpError() << "there is no stack @" << getStack();
  if (getNumResults() < getInits().size())
    return emitOpError() << "carries " << getInits().size() << " values but has " << getNumResults()
                         << " results";
  SmallVector<Type> sequences(getSequences().getTypes());
  llvm::append_range(sequences, getJoined().getTypes());
  for (Type type : sequences) {
    if (isUnbound(type))
      continue;
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() == 0)
      return emitOpError() << "goes over or joins " << type << ", which has no rows";
    if (!isa<ExprAttr>(stack.getCountAttr()) && tensor.getShape()[0] != stack.getCount())
      return emitOpError() << "has a sequence of " << type << " for the " << stack.getCount()
                           << " elements of @" << getStack();
  }
  return success();
}

LogicalResult ForOp::verifyRegions() {
  Operation *yield = getBody().front().getTerminator();
  const size_t inits = getInits().size();
  if (yield->getNumOperands() != getNumResults())
    return emitOpError() << "has " << getNumResults() << " results but yields "
                         << yield->getNumOperands();
  if (getBody().getNumArguments() != getNumOperands())
    return emitOpError() << "has " << getNumOperands() << " operands but a body of "
                         << getBody().getNumArguments() << " arguments";
  for (auto [sequence, argument] : llvm::zip(getSequences(), getBody().getArguments()))
    if (rowType(sequence.getType()) != argument.getType())
      return emitOpError() << "goes over " << sequence.getType() << " but is given "
                           << argument.getType() << " inside";
  for (auto [result, yielded] : llvm::zip(getJoined(), yield->getOperands()))
    if (rowType(result.getType()) != yielded.getType())
      return yield->emitOpError() << "yields " << yielded.getType() << " for a row of "
                                  << result.getType();
  for (auto [i, init, argument, yielded, result] :
       llvm::enumerate(getInits().getTypes(), getCarried(), yield->getOperands().take_back(inits),
                       getResults().take_back(inits))) {
    if (init != argument.getType() || init != result.getType())
      return emitOpError() << "carried value " << i << " starts as " << init << " but is "
                           << argument.getType() << " inside and " << result.getType() << " after";
    if (init != yielded.getType())
      return yield->emitOpError() << "carried value " << i << " changes type from " << init
                                  << " to " << yielded.getType();
  }
  return success();
}

ParseResult WhenOp::parse(OpAsmParser &parser, OperationState &state) {
  Attribute condition;
  Region *thenRegion = state.addRegion(), *elseRegion = state.addRegion();
  SmallVector<Type> types;
  FailureOr<size_t> results = parsedResults(parser);
  if (failed(results) || parseExpr(parser, condition) ||
      parseOperandTypes(parser, *results, types) || parseBody(parser, *thenRegion))
    return failure();
  WhenOp::ensureTerminator(*thenRegion, parser.getBuilder(), state.location);
  if (succeeded(parser.parseOptionalKeyword("else"))) {
    if (parseBody(parser, *elseRegion))
      return failure();
    WhenOp::ensureTerminator(*elseRegion, parser.getBuilder(), state.location);
  }
  state.addAttribute("condition", condition);
  state.addTypes(types);
  return success();
}

void WhenOp::print(OpAsmPrinter &p) {
  p << ' ';
  printExpr(p, getCondition());
  printOperandTypes(p, getResultTypes());
  p << ' ';
  p.printRegion(getThenRegion(), false, true);
  if (!getElseRegion().empty()) {
    p << " else ";
    p.printRegion(getElseRegion(), false, true);
  }
}

LogicalResult WhenOp::verify() {
  if (getElseRegion().empty() && getNumResults() > 0)
    return emitOpError("has results but no else");
  return success();
}

LogicalResult WhenOp::verifyRegions() {
  for (Region *region : getRegions()) {
    if (region->empty())
      continue;
    Operation *yield = region->front().getTerminator();
    if (yield->getNumOperands() != getNumResults())
      return yield->emitOpError() << "yields " << yield->getNumOperands() << " values; expected "
                                  << getNumResults();
    for (auto [yielded, result] : llvm::zip(yield->getOperandTypes(), getResultTypes()))
      if (yielded != result)
        return yield->emitOpError() << "yields " << yielded << "; expected " << result;
  }
  return success();
}

ParseResult YieldOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseValueOp(parser, state, {});
}
void YieldOp::print(OpAsmPrinter &p) { printValueOp(p, *this); }

} // namespace hydra
