// What models are put together from: definitions and their calls, arithmetic, bundles.
#include "dialects/hydra/Arithmetic.h"
#include "dialects/hydra/SymbolLists.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hydra {

//===-- section -----------------------------------------------------------------------------===//

LogicalResult SectionOp::verify() {
  StringRef name = getSection();
  auto belongs = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (!name.empty() && llvm::isAlpha(name.front()) && llvm::all_of(name, belongs))
    return success();
  return emitOpError() << "is named '" << name
                       << "'; expected a letter, then letters, digits and '_'";
}

//===-- def ---------------------------------------------------------------------------------===//

/// The parameters of a definition.
static SymbolLists parametersOf(DefOp op) {
  SymbolLists lists{llvm::to_vector(op.getParamNames()),
                    llvm::to_vector(op.getParamKinds()),
                    llvm::to_vector(op.getParamDefaults()),
                    {}};
  lists.options.assign(lists.names.size(), ArrayAttr::get(op.getContext(), {}));
  return lists;
}

ParseResult parseLetBody(OpAsmParser &parser, Block &body, Location location,
                         llvm::function_ref<Value(StringRef)> argument) {
  OperationState let(parser.getEncodedSourceLoc(parser.getCurrentLocation()),
                     LetOp::getOperationName());
  Block &inner = let.addRegion()->emplaceBlock();
  SmallVector<Value> values;
  if (parseArithmetic(parser, inner, values, argument))
    return failure();
  OpBuilder b(parser.getContext()); // blocks outside of operations have none
  b.setInsertionPointToEnd(&inner);
  YieldOp::create(b, let.location, values);
  let.addTypes(SmallVector<Type>(values.size(), AnyType::get(parser.getContext())));
  b.setInsertionPointToEnd(&body);
  YieldOp::create(b, location, b.create(let)->getResults());
  return success();
}

LetOp letBody(Block &body) {
  auto let = body.empty() ? LetOp() : dyn_cast<LetOp>(body.front());
  if (!let || let->getNextNode() != body.getTerminator() ||
      !llvm::equal(let.getResults(), body.getTerminator()->getOperands()))
    return {};
  return let;
}

/// The body of a definition that is an expression of its arguments.
static ParseResult parseExpressionBody(OpAsmParser &parser, Location location, Block &body,
                                       ArrayRef<OpAsmParser::Argument> arguments) {
  StringSet<> names;
  for (const OpAsmParser::Argument &argument : arguments) {
    if (!names.insert(argument.ssaName.name).second)
      return parser.emitError(argument.ssaName.location)
             << "'" << argument.ssaName.name << "' is an argument twice";
    body.addArgument(argument.type, parser.getEncodedSourceLoc(argument.ssaName.location));
  }
  return parseLetBody(parser, body, location, [&](StringRef name) {
    for (auto [argument, value] : llvm::zip(arguments, body.getArguments()))
      if (argument.ssaName.name == name)
        return Value(value);
    return Value();
  });
}

ParseResult DefOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &b = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SymbolLists parameters;
  if (parser.parseSymbolName(name) ||
      parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren) || parameters.parse(parser))
    return failure();
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = AnyType::get(parser.getContext());
  Region *body = state.addRegion();
  if (succeeded(parser.parseOptionalEqual())) {
    if (parseExpressionBody(parser, state.location, body->emplaceBlock(), arguments))
      return failure();
  } else {
    if (parseBody(parser, *body, arguments))
      return failure();
    DefOp::ensureTerminator(*body, b, state.location);
  }
  state.addAttribute("sym_name", name);
  if (parameters.names.empty())
    return success();
  state.addAttribute("param_names", b.getArrayAttr(parameters.names));
  state.addAttribute("param_kinds", b.getArrayAttr(parameters.kinds));
  state.addAttribute("param_defaults", b.getArrayAttr(parameters.defaults));
  return success();
}

void DefOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << '(';
  llvm::interleaveComma(getBody().getArguments(), p);
  p << ')';
  parametersOf(*this).print(p);
  if (LetOp let = letBody(getBody().front())) {
    p << " = ";
    printArithmetic(p, let);
    return;
  }
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult DefOp::verify() {
  if (failed(verifyName(*this, getSymName())))
    return failure();
  StringSet<> names;
  for (auto [name, kind] : llvm::zip(getParamNames().getAsValueRange<StringAttr>(),
                                     getParamKinds().getAsRange<SymbolKindAttr>())) {
    if (kind.getValue() == SymbolKind::choice)
      return emitOpError() << "has the choice '" << name
                           << "' for a parameter; expected dims, reals and flags";
    if (!names.insert(name).second)
      return emitOpError() << "parameter '" << name << "' is declared twice";
  }
  return parametersOf(*this).verify(*this);
}

//===-- call --------------------------------------------------------------------------------===//

/// Whether `name =` comes next.
static bool atAssignment(AsmParser &parser) {
  // The lexer's buffer ends with a zero byte, which ends these loops too.
  const char *c = parser.getCurrentLocation().getPointer();
  const char *start = c;
  while (isalnum(static_cast<unsigned char>(*c)) || *c == '_')
    ++c;
  if (c == start)
    return false;
  while (*c == ' ' || *c == '\t' || *c == '\n' || *c == '\r')
    ++c;
  return c[0] == '=' && c[1] != '=';
}

ParseResult parseCallArguments(OpAsmParser &parser, OperationState &state,
                               llvm::function_ref<ParseResult()> parseValue) {
  Builder &b = parser.getBuilder();
  SmallVector<Attribute> names, values;
  auto one = [&]() -> ParseResult {
    if (!atAssignment(parser))
      return parseValue();
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual() ||
        parseExpr(parser, values.emplace_back()))
      return failure();
    if (llvm::is_contained(names, b.getStringAttr(name)))
      return parser.emitError(loc) << "'" << name << "' is given twice";
    names.push_back(b.getStringAttr(name));
    return success();
  };
  if (failed(parser.parseOptionalRParen()) &&
      (parser.parseCommaSeparatedList(one) || parser.parseRParen()))
    return failure();
  if (names.empty())
    return success();
  state.addAttribute("param_names", b.getArrayAttr(names));
  state.addAttribute("param_values", b.getArrayAttr(values));
  return success();
}

void printCallArguments(OpAsmPrinter &p, CallOp call, llvm::function_ref<void(Value)> printValue) {
  auto comma = [&] { p << ", "; };
  llvm::interleave(call.getArguments(), printValue, comma);
  ArrayAttr names = call.getParamNames(), values = call.getParamValues();
  for (auto [i, name, value] : llvm::enumerate(names.getAsValueRange<StringAttr>(), values)) {
    if (i > 0 || !call.getArguments().empty())
      comma();
    p << name << " = ";
    printExpr(p, value);
  }
  p << ')';
}

ParseResult CallOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr callee;
  auto any = AnyType::get(parser.getContext());
  FailureOr<size_t> results = parsedResults(parser);
  auto value = [&]() -> ParseResult {
    OpAsmParser::UnresolvedOperand operand;
    return failure(parser.parseOperand(operand) ||
                   parser.resolveOperand(operand, any, state.operands));
  };
  if (failed(results) || parser.parseSymbolName(callee) || parser.parseLParen() ||
      parseCallArguments(parser, state, value))
    return failure();
  state.addAttribute("callee", FlatSymbolRefAttr::get(callee));
  state.addTypes(SmallVector<Type>(*results, any));
  return success();
}

void CallOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getCallee());
  p << '(';
  printCallArguments(p, *this, [&](Value v) { p << v; });
}

/// Whether a call gives values to all parameters of a definition, and to no others.
static LogicalResult verifyParameters(CallOp call, DefOp callee) {
  SmallVector<std::string> names;
  for (auto [name, value] :
       llvm::zip(callee.getParamNames().getAsValueRange<StringAttr>(), callee.getParamDefaults())) {
    names.push_back(name.str());
    if (isa<UnitAttr>(value) &&
        !llvm::is_contained(call.getParamNames().getAsValueRange<StringAttr>(), name))
      return call.emitOpError() << "gives no value to the parameter '" << name << "' of @"
                                << call.getCallee();
  }
  for (StringRef name : call.getParamNames().getAsValueRange<StringAttr>())
    if (!llvm::is_contained(names, name))
      return call.emitOpError() << "gives '" << name << "' a value, but @" << call.getCallee()
                                << (names.empty() ? " has no parameters"
                                                  : " has only: " + llvm::join(names, ", "));
  return success();
}

LogicalResult CallOp::verify() {
  if (getParamNames().size() != getParamValues().size() ||
      !llvm::all_of(getParamValues(), isExpression))
    return emitOpError() << "has " << getParamNames().size() << " names for "
                         << getParamValues().size() << " numbers";
  auto model = (*this)->getParentOfType<ModelOp>();
  auto callee = model ? model.lookupSymbol<DefOp>(getCalleeAttr()) : DefOp();
  if (!callee)
    return emitOpError() << "there is no definition @" << getCallee();
  if (!callee.getBody().hasOneBlock() || callee.getBody().front().empty())
    return success(); // the definition reports it
  size_t arguments = callee.getBody().getNumArguments();
  size_t results = callee.getBody().front().back().getNumOperands();
  if (getArguments().size() != arguments || getNumResults() != results)
    return emitOpError() << "has " << getArguments().size() << " operands and " << getNumResults()
                         << " results; @" << getCallee() << " takes " << arguments << " and gives "
                         << results;
  return verifyParameters(*this, callee);
}

//===-- let ---------------------------------------------------------------------------------===//

ParseResult LetOp::parse(OpAsmParser &parser, OperationState &state) {
  Block &body = state.addRegion()->emplaceBlock();
  SmallVector<Value> values;
  if (parseArithmetic(parser, body, values))
    return failure();
  OpBuilder b(parser.getContext());
  b.setInsertionPointToEnd(&body);
  YieldOp::create(b, state.location, values);
  state.addTypes(SmallVector<Type>(values.size(), AnyType::get(parser.getContext())));
  return success();
}

void LetOp::print(OpAsmPrinter &p) {
  p << ' ';
  printArithmetic(p, *this);
}

LogicalResult LetOp::verifyRegions() {
  const size_t values = getBody().front().getTerminator()->getNumOperands();
  if (values != getNumResults() || values == 0)
    return emitOpError() << "has " << getNumResults() << " results for " << values
                         << " expressions";
  return verifyArithmetic(*this);
}

//===-- bundle, field -----------------------------------------------------------------------===//

ParseResult BundleOp::parse(OpAsmParser &parser, OperationState &state) {
  auto any = AnyType::get(parser.getContext());
  SmallVector<Attribute> names;
  auto one = [&]() -> ParseResult {
    StringRef name;
    OpAsmParser::UnresolvedOperand operand;
    if (parser.parseKeyword(&name) || parser.parseEqual() || parser.parseOperand(operand))
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    return parser.resolveOperand(operand, any, state.operands);
  };
  if (parser.parseCommaSeparatedList(one))
    return failure();
  state.addAttribute("names", parser.getBuilder().getArrayAttr(names));
  state.addTypes(any);
  return success();
}

void BundleOp::print(OpAsmPrinter &p) {
  p << ' ';
  for (auto [i, name, value] :
       llvm::enumerate(getNames().getAsValueRange<StringAttr>(), getFields()))
    p << (i ? ", " : "") << name << " = " << value;
}

LogicalResult BundleOp::verify() {
  if (getNames().size() != getFields().size() || getNames().empty())
    return emitOpError() << "has " << getNames().size() << " names for " << getFields().size()
                         << " values";
  StringSet<> names;
  for (StringRef name : getNames().getAsValueRange<StringAttr>()) {
    if (!isWord(name))
      return emitOpError() << "'" << name << "' is no name for a field";
    if (!names.insert(name).second)
      return emitOpError() << "has the field '" << name << "' twice";
  }
  return success();
}

ParseResult FieldOp::parse(OpAsmParser &parser, OperationState &state) {
  if (parseValueOp(parser, state, getAttributeNames()))
    return failure();
  state.addTypes(AnyType::get(parser.getContext()));
  return success();
}
void FieldOp::print(OpAsmPrinter &p) { printValueOp(p, *this); }

LogicalResult FieldOp::verify() {
  if (isWord(getName()))
    return success();
  return emitOpError() << "'" << getName() << "' is no name for a field";
}

} // namespace hydra
