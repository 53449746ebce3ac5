// Parsing of arithmetic on values.
#include "dialects/hydra/Arithmetic.h"
#include "dialects/hydra/ArithmeticWords.h"
#include "dialects/hydra/ExprParser.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hydra {

namespace {

/// The word at a place of the text, if it is given a value there, as in `axis = 1`; else nothing.
StringRef assignedWord(SMLoc loc) {
  // The lexer's buffer ends with a zero byte, which ends these loops too.
  const char *end = loc.getPointer();
  while (isalnum(static_cast<unsigned char>(*end)) || *end == '_')
    ++end;
  const StringRef word(loc.getPointer(), end - loc.getPointer());
  while (*end == ' ')
    ++end;
  return end[0] == '=' && end[1] != '=' ? word : StringRef();
}

class ArithmeticParser : public ExprParser {
public:
  ArithmeticParser(OpAsmParser &parser, Block &block, llvm::function_ref<Value(StringRef)> argument)
      : ExprParser(parser), parser(parser), builder(parser.getContext()), argument(argument) {
    builder.setInsertionPointToEnd(&block);
  }

  ParseResult parseResult(Value &value) {
    Term e;
    return failure(parse(e) || valueOf(e, value));
  }

private:
  Location at(SMLoc loc) { return parser.getEncodedSourceLoc(loc); }
  Type any() { return AnyType::get(parser.getContext()); }

  /// The value of a term: of one without any, a constant.
  ParseResult valueOf(const Term &e, Value &value) {
    value = dyn_cast<Value>(e.value);
    if (value)
      return success();
    if (!isRealOrExpr(e.symbolic()))
      return parser.emitError(e.loc) << "expected a number or a value";
    value = ConstantOp::create(builder, at(e.loc), any(), e.symbolic(), ArrayAttr(), TypeAttr());
    return success();
  }

  /// Appends an operation with one result.
  ParseResult append(OperationName name, const SmallVectorImpl<Value> &operands,
                     const NamedAttrList &attributes, Term &e) {
    OperationState state(at(e.loc), name);
    state.addOperands(operands);
    state.addTypes(any());
    state.attributes = attributes;
    Operation *op = builder.create(state);
    e.value = Value(op->getResult(0));
    auto inferred = dyn_cast<InferTypeOpInterface>(op);
    SmallVector<Type> types;
    if (!inferred)
      return success();
    if (failed(inferred.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                         op->getDiscardableAttrDictionary(),
                                         op->getPropertiesStorage(), op->getRegions(), types)))
      return failure();
    if (types.size() == 1)
      return success();
    return parser.emitError(e.loc) << "'" << name.stripDialect() << "' has " << types.size()
                                   << " results; arithmetic has room for one";
  }

  OptionalParseResult parseValue(Term &e) override {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult found = parser.parseOptionalOperand(operand);
    if (found.has_value())
      return failed(*found) ? ParseResult(failure()) : parseFields(operand, e);
    StringAttr symbol;
    if (failed(parser.parseOptionalSymbolName(symbol)))
      return std::nullopt;
    if (succeeded(parser.parseOptionalLParen()))
      return parseDefinition(symbol, e);
    // In front of what is computed, where gradients of all its uses are complete.
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.getInsertionBlock();
    builder.setInsertionPoint(block, llvm::find_if_not(*block, llvm::IsaPred<UseOp>));
    e.value = Value(UseOp::create(builder, at(e.loc), any(), FlatSymbolRefAttr::get(symbol)));
    return ParseResult(success());
  }

  /// `%x`, `%x.sum`: to the parser of MLIR, one name.
  ParseResult parseFields(OpAsmParser::UnresolvedOperand operand, Term &e) {
    if (operand.name.contains('-'))
      return parser.emitError(e.loc)
             << "'" << operand.name << "' reads as one name; write spaces around '-'";
    auto [name, fields] = operand.name.split('.');
    operand.name = name;
    SmallVector<Value> values;
    if (argument) {
      values.push_back(argument(name));
      if (!values[0])
        return parser.emitError(e.loc) << "'" << name << "' is no argument of the definition";
    } else if (parser.resolveOperand(operand, any(), values)) {
      return failure();
    }
    e.value = values[0];
    while (!fields.empty()) {
      auto [field, rest] = fields.split('.');
      fields = rest;
      count();
      e.value = Value(FieldOp::create(builder, at(e.loc), any(), cast<Value>(e.value),
                                      builder.getStringAttr(field)));
    }
    return success();
  }

  ParseResult parseDefinition(StringAttr callee, Term &e) {
    OperationState state(at(e.loc), CallOp::getOperationName());
    count();
    auto value = [&]() -> ParseResult {
      Term argument;
      Value operand;
      if (parseArgument(argument) || valueOf(argument, operand))
        return failure();
      state.addOperands(operand);
      return success();
    };
    if (parseCallArguments(parser, state, value))
      return failure();
    state.addAttribute("callee", FlatSymbolRefAttr::get(callee));
    state.addTypes(any());
    e.value = Value(builder.create(state)->getResult(0));
    return success();
  }

  ParseResult parseCall(StringRef name, Term &e) override {
    auto info = RegisteredOperationName::lookup(("hydra." + name).str(), parser.getContext());
    if (info && info->getTypeID() == TypeID::get<BundleOp>())
      return parseBundle(e);
    if (info && info->getTypeID() == TypeID::get<WhenOp>())
      return parseWhen(e);
    if (!info || !isFunction(*info))
      return ExprParser::parseCall(name, e);
    SmallVector<StringRef> names =
        llvm::map_to_vector(info->getAttributeNames(), [](StringAttr a) { return a.getValue(); });
    SmallVector<Term> args;
    NamedAttrList attributes;
    auto one = [&]() -> ParseResult {
      SMLoc loc = parser.getCurrentLocation();
      StringRef attribute;
      if (succeeded(parser.parseOptionalKeyword(&attribute, names)))
        return parseAttribute(parser, attribute, loc, attributes);
      if (StringRef unknown = assignedWord(loc); !unknown.empty())
        return parser.emitError(loc)
               << "unknown attribute '" << unknown << "' of " << info->getStringRef()
               << "; it has: " << (names.empty() ? "none" : llvm::join(names, ", "));
      if (info->hasTrait<Reduction>() && args.size() == 1)
        return parseAxes(attributes);
      if (names.size() == 1 && *loc.getPointer() == '[')
        return parseList(names[0], attributes);
      return parseArgument(args.emplace_back());
    };
    if (failed(parser.parseOptionalRParen()) &&
        (parser.parseCommaSeparatedList(one) || parser.parseRParen()))
      return failure();
    return applyOperation(name, *info, args, attributes, e);
  }

  /// `bundle(sum = …, count = …)`.
  ParseResult parseBundle(Term &e) {
    SmallVector<Value> values;
    SmallVector<Attribute> names;
    auto one = [&]() -> ParseResult {
      Term field;
      StringRef name;
      if (parser.parseKeyword(&name) || parser.parseEqual() || parseArgument(field))
        return failure();
      names.push_back(builder.getStringAttr(name));
      return valueOf(field, values.emplace_back());
    };
    count();
    if (parser.parseCommaSeparatedList(one) || parser.parseRParen())
      return failure();
    e.value =
        Value(BundleOp::create(builder, at(e.loc), any(), values, builder.getArrayAttr(names)));
    return success();
  }

  /// `when(condition, …, …)`: operations of either branch are in a region of their own.
  ParseResult parseWhen(Term &e) {
    Attribute condition;
    OperationState state(at(e.loc), WhenOp::getOperationName());
    Block *around = builder.getInsertionBlock();
    auto branch = [&]() -> ParseResult {
      Term value;
      Value result;
      builder.setInsertionPointToEnd(&state.addRegion()->emplaceBlock());
      if (parser.parseComma() || parseArgument(value) || valueOf(value, result))
        return failure();
      YieldOp::create(builder, at(value.loc), result);
      return success();
    };
    count();
    ParseResult parsed =
        failure(parseExpr(parser, condition) || branch() || branch() || parser.parseRParen());
    builder.setInsertionPointToEnd(around);
    if (failed(parsed))
      return failure();
    state.addAttribute("condition", condition);
    state.addTypes(any());
    e.value = Value(builder.create(state)->getResult(0));
    return success();
  }

  /// A list without its name, `[B, S, D]`.
  ParseResult parseList(StringRef name, NamedAttrList &attributes) {
    SMLoc loc = parser.getCurrentLocation();
    if (attributes.get(name))
      return parser.emitError(loc) << "attribute '" << name << "' is given twice";
    ArrayAttr list;
    if (parseExprList(parser, list))
      return failure();
    attributes.set(name, list);
    return success();
  }

  /// The axes of a reduction, `3` or `[0, 1]`, which stay as dimensions of 1.
  ParseResult parseAxes(NamedAttrList &attributes) {
    SMLoc loc = parser.getCurrentLocation();
    attributes.set("keep", builder.getUnitAttr());
    if (*loc.getPointer() == '[')
      return parseList("axes", attributes);
    if (attributes.get("axes"))
      return parser.emitError(loc) << "attribute 'axes' is given twice";
    Attribute axis;
    if (parseExpr(parser, axis))
      return failure();
    attributes.set("axes", builder.getArrayAttr(axis));
    return success();
  }

  ParseResult applyOperation(StringRef name, RegisteredOperationName info, ArrayRef<Term> args,
                             NamedAttrList &attributes, Term &e) {
    auto symbolic = [](const Term &a) { return a.isSymbolic(); };
    const unsigned most = symbolFunctionArity(name).second;
    if (attributes.empty() && most != 0 && llvm::all_of(args, symbolic))
      return applyFunction(name, args, e);
    if (failed(info.verifyInherentAttrs(attributes, [&] { return parser.emitError(e.loc); })))
      return failure();
    count();
    SmallVector<Value> values;
    for (const Term &a : args)
      if (valueOf(a, values.emplace_back()))
        return failure();
    // `max(a, b, c)` of an operation that takes two.
    while (most == ~0u && values.size() > 2) {
      count();
      if (append(info, SmallVector<Value>{values[0], values[1]}, attributes, e))
        return failure();
      values.erase(values.begin());
      values[0] = cast<Value>(e.value);
    }
    return append(info, values, attributes, e);
  }

  ParseResult apply(StringRef head, ArrayRef<Term> args, Term &e) override {
    if (llvm::all_of(args, [](const Term &a) { return a.isSymbolic(); }))
      return ExprParser::apply(head, args, e);
    count();
    const Operator *found = operatorOf(head, args.size());
    if (!found)
      return parser.emitError(e.loc) << "'" << head << "' joins conditions over symbols; "
                                     << "this one has a value";
    SmallVector<Value> values;
    for (const Term &a : args)
      if (valueOf(a, values.emplace_back()))
        return failure();
    NamedAttrList attributes;
    if (!found->predicate.empty())
      attributes.set("is", builder.getStringAttr(found->predicate));
    return append(OperationName(found->operation, parser.getContext()), values, attributes, e);
  }

  OpAsmParser &parser;
  OpBuilder builder;
  llvm::function_ref<Value(StringRef)> argument;
};

} // namespace

ParseResult parseArithmetic(OpAsmParser &parser, Block &block, SmallVectorImpl<Value> &values,
                            llvm::function_ref<Value(StringRef)> argument) {
  constexpr size_t kMostResults = 64;
  SMLoc loc = parser.getCurrentLocation();
  do {
    if (values.size() == kMostResults)
      return parser.emitError(loc) << "more than " << kMostResults << " expressions";
    if (ArithmeticParser(parser, block, argument).parseResult(values.emplace_back()))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}

} // namespace hydra
