// Parsing of expressions over symbols and of arithmetic; the grammar stands in Expr.h.
#include "dialects/hydra/ExprParser.h"
#include "dialects/hydra/Hydra.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

/// The printed form of an expression nests no deeper than it has operators.
static constexpr unsigned kMostNesting = 512;

int strength(StringRef head, unsigned args) {
  if (args == 1 && head == "-")
    return 6;
  return llvm::StringSwitch<int>(head)
      .Case("or", 0)
      .Case("and", 1)
      .Case("not", 2)
      .Cases({"==", "<", "<=", ">", ">="}, 3)
      .Cases({"+", "-"}, 4)
      .Cases({"*", "/"}, 5)
      .Default(kStrongest);
}

std::pair<unsigned, unsigned> symbolFunctionArity(StringRef name) {
  return llvm::StringSwitch<std::pair<unsigned, unsigned>>(name)
      .Cases({"ceil", "floor", "round", "real", "sqrt", "exp", "log", "logit", "sigmoid"}, {1, 1})
      .Case("pow", {2, 2})
      .Cases({"min", "max"}, {2, ~0u})
      .Cases({"clamp", "select"}, {3, 3})
      .Default({0, 0});
}

ParseResult ExprParser::parse(Term &e) {
  SMLoc loc = parser.getCurrentLocation();
  if (parseOr(e))
    return failure();
  if (operators <= kMostOperators)
    return success();
  return parser.emitError(loc) << "expression has " << operators << " operators; expected at most "
                               << kMostOperators;
}

ParseResult ExprParser::apply(StringRef head, ArrayRef<Term> args, Term &e) {
  count();
  SmallVector<Attribute> symbolic = llvm::map_to_vector(args, [](Term a) { return a.symbolic(); });
  e.value = Attribute(ExprAttr::get(parser.getContext(), head, symbolic));
  return success();
}

ParseResult ExprParser::applyFunction(StringRef name, ArrayRef<Term> args, Term &e) {
  // Inside `#hydra.expr<…>` the brackets `<` and `>` must pair.
  StringRef comparison = llvm::StringSwitch<StringRef>(inAngles ? name : "")
                             .Case("lt", "<")
                             .Case("le", "<=")
                             .Case("gt", ">")
                             .Case("ge", ">=")
                             .Default("");
  auto [low, high] =
      comparison.empty() ? symbolFunctionArity(name) : std::pair<unsigned, unsigned>{2, 2};
  if (low == 0)
    return parser.emitError(e.loc) << "unknown function '" << name << "'";
  for (const Term &a : args)
    if (!a.isSymbolic())
      return parser.emitError(e.loc) << "'" << name << "' is a function of symbols, not of values";
  if (args.size() < low || args.size() > high)
    return parser.emitError(e.loc)
           << "'" << name << "' has " << args.size() << " arguments; expected "
           << (high > low ? "at least " : "") << low;
  return ExprParser::apply(comparison.empty() ? name : comparison, args, e);
}

ParseResult ExprParser::parseCall(StringRef name, Term &e) {
  SmallVector<Term> args;
  auto argument = [&] { return parseArgument(args.emplace_back()); };
  if (parser.parseCommaSeparatedList(argument) || parser.parseRParen())
    return failure();
  return applyFunction(name, args, e);
}

/// Everything that nests passes through here.
ParseResult ExprParser::nested(Term &e, Part part) {
  if (nesting == kMostNesting)
    return parser.emitError(parser.getCurrentLocation())
           << "expression nests more than " << kMostNesting << " deep";
  ++nesting;
  ParseResult result = (this->*part)(e);
  --nesting;
  return result;
}

/// The right operand of an operator that stands at `loc`, behind its left operand `e`.
ParseResult ExprParser::parseBinary(Term &e, StringRef head, SMLoc loc, Part operand) {
  Term right, whole{{}, loc};
  if ((this->*operand)(right) || apply(head, {e, right}, whole))
    return failure();
  e = whole;
  return success();
}

ParseResult ExprParser::parseChain(Term &e, StringRef word, Part operand) {
  if ((this->*operand)(e))
    return failure();
  while (true) {
    SMLoc loc = parser.getCurrentLocation();
    if (failed(parser.parseOptionalKeyword(word)))
      return success();
    if (parseBinary(e, word, loc, operand))
      return failure();
  }
}

ParseResult ExprParser::parseOr(Term &e) { return parseChain(e, "or", &ExprParser::parseAnd); }
ParseResult ExprParser::parseAnd(Term &e) { return parseChain(e, "and", &ExprParser::parseNot); }

ParseResult ExprParser::parseNot(Term &e) {
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword("not")))
    return parseComparison(e);
  Term operand;
  e.loc = loc;
  return failure(nested(operand, &ExprParser::parseNot) || apply("not", operand, e));
}

ParseResult ExprParser::parseComparison(Term &e) {
  if (parseSum(e))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  StringRef head;
  if (succeeded(parser.parseOptionalEqual())) {
    if (parser.parseEqual())
      return failure();
    head = "==";
  } else if (!inAngles && succeeded(parser.parseOptionalLess())) {
    head = succeeded(parser.parseOptionalEqual()) ? "<=" : "<";
  } else if (!inAngles && succeeded(parser.parseOptionalGreater())) {
    head = succeeded(parser.parseOptionalEqual()) ? ">=" : ">";
  } else {
    return success();
  }
  return parseBinary(e, head, loc, &ExprParser::parseSum);
}

ParseResult ExprParser::parseSum(Term &e) {
  if (parseTerm(e))
    return failure();
  while (true) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef head = succeeded(parser.parseOptionalPlus())    ? "+"
                     : succeeded(parser.parseOptionalMinus()) ? "-"
                                                              : "";
    if (head.empty())
      return success();
    if (parseBinary(e, head, loc, &ExprParser::parseTerm))
      return failure();
  }
}

ParseResult ExprParser::parseTerm(Term &e) {
  if (parseUnary(e))
    return failure();
  while (true) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef head = succeeded(parser.parseOptionalStar())    ? "*"
                     : succeeded(parser.parseOptionalSlash()) ? "/"
                                                              : "";
    if (head.empty())
      return success();
    if (parseBinary(e, head, loc, &ExprParser::parseUnary))
      return failure();
  }
}

ParseResult ExprParser::parseUnary(Term &e) {
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalMinus()))
    return parsePrimary(e);
  Term operand;
  if (nested(operand, &ExprParser::parseUnary))
    return failure();
  e.loc = loc;
  Builder b(parser.getContext());
  Attribute number = dyn_cast<Attribute>(operand.value);
  if (auto f = dyn_cast_or_null<FloatAttr>(number))
    e.value = Attribute(b.getF64FloatAttr(-f.getValueAsDouble()));
  else if (auto i = dyn_cast_or_null<IntegerAttr>(number); i && i.getType().isInteger(64))
    e.value = Attribute(b.getI64IntegerAttr(-intValue(i)));
  else
    return apply("-", operand, e);
  return success();
}

ParseResult ExprParser::parsePrimary(Term &e) {
  e.loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalLParen()))
    return failure(nested(e, &ExprParser::parseOr) || parser.parseRParen());
  OptionalParseResult value = parseValue(e);
  if (value.has_value())
    return *value;
  StringRef word;
  if (succeeded(parser.parseOptionalKeyword(&word)))
    return parseWord(word, e);
  return parseNumber(e);
}

ParseResult ExprParser::parseWord(StringRef word, Term &e) {
  Builder b(parser.getContext());
  if (word == "true" || word == "false")
    e.value = Attribute(b.getBoolAttr(word == "true"));
  else if (word == "inf")
    e.value = Attribute(b.getF64FloatAttr(std::numeric_limits<double>::infinity()));
  else if (succeeded(parser.parseOptionalLParen()))
    return parseCall(word, e);
  else
    e.value = Attribute(ExprAttr::get(parser.getContext(), word, {}));
  return success();
}

ParseResult ExprParser::parseNumber(Term &e) {
  Builder b(parser.getContext());
  int64_t integer;
  OptionalParseResult parsed = parser.parseOptionalInteger(integer);
  if (parsed.has_value()) {
    if (failed(*parsed))
      return failure();
    e.value = Attribute(b.getI64IntegerAttr(integer));
    return checkNumberEnd(e.loc);
  }
  if (!isdigit(static_cast<unsigned char>(*e.loc.getPointer())))
    return parser.emitError(e.loc) << "expected a number, a symbol or a function";
  double real;
  if (parser.parseFloat(real))
    return failure();
  if (!std::isfinite(real))
    return parser.emitError(e.loc) << "number is too large";
  e.value = Attribute(b.getF64FloatAttr(real));
  return success();
}

/// `1e5` would read as the integer 1 and a word.
ParseResult ExprParser::checkNumberEnd(SMLoc start) {
  const char *end = start.getPointer();
  while (isdigit(static_cast<unsigned char>(*end)))
    ++end;
  if (*end != 'e' && *end != 'E')
    return success();
  return parser.emitError(start) << "a real number needs a decimal point, as in "
                                 << StringRef(start.getPointer(), end - start.getPointer())
                                 << ".0e5";
}

} // namespace hydra
