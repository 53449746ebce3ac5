// Printing and parsing of symbol expressions.
#include "dialects/hydra/Expr.h"
#include "dialects/hydra/ExprText.h"
#include "dialects/hydra/Hydra.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

bool hasExpr(Attribute attribute) {
  if (isa_and_nonnull<ExprAttr>(attribute))
    return true;
  if (auto array = dyn_cast_or_null<ArrayAttr>(attribute))
    return llvm::any_of(array, hasExpr);
  return false;
}

void forEachSymbol(Attribute expr, llvm::function_ref<void(StringRef)> visit) {
  if (auto e = dyn_cast_or_null<ExprAttr>(expr)) {
    if (e.getArgs().empty())
      visit(e.getHead());
    for (Attribute a : e.getArgs())
      forEachSymbol(a, visit);
  } else if (auto array = dyn_cast_or_null<ArrayAttr>(expr)) {
    for (Attribute a : array)
      forEachSymbol(a, visit);
  } else if (auto init = dyn_cast_or_null<InitAttr>(expr)) {
    for (Attribute a : init.getArgs())
      forEachSymbol(a, visit);
  }
}

static bool isInt(Attribute a) {
  auto i = dyn_cast_or_null<IntegerAttr>(a);
  return i && i.getType().isInteger(64);
}

bool isIntOrExpr(Attribute a) { return isInt(a) || isa_and_nonnull<ExprAttr>(a); }
bool isExpression(Attribute a) { return isRealOrExpr(a) || isa_and_nonnull<BoolAttr>(a); }
bool isRealOrExpr(Attribute a) {
  auto real = dyn_cast_or_null<FloatAttr>(a);
  return isIntOrExpr(a) || (real && real.getType().isF64() && !real.getValue().isNaN());
}
bool isIntListOrExprs(Attribute a) {
  auto array = dyn_cast_or_null<ArrayAttr>(a);
  return array && llvm::all_of(array, isIntOrExpr);
}

int64_t intValue(Attribute a) { return cast<IntegerAttr>(a).getInt(); }
double realValue(Attribute a) {
  if (auto f = dyn_cast<FloatAttr>(a))
    return f.getValueAsDouble();
  return static_cast<double>(intValue(a));
}
SmallVector<int64_t> intList(ArrayAttr a) { return llvm::map_to_vector(a, intValue); }

//===-- Printing ----------------------------------------------------------------------------===//

namespace {

/// Binding strength, as in the grammar of Expr.h; functions and leaves bind tightest.
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
      .Default(7);
}

/// Inside `#hydra.expr<…>` the brackets `<` and `>` must pair, so comparisons are functions there.
constexpr std::pair<StringLiteral, StringLiteral> kComparisons[] = {
    {"lt", "<"}, {"le", "<="}, {"gt", ">"}, {"ge", ">="}};

StringRef comparisonFunction(StringRef head) {
  for (auto [function, symbol] : kComparisons)
    if (symbol == head)
      return function;
  return "";
}

void printReal(AsmPrinter &p, FloatAttr value) {
  if (value.getValue().isInfinity())
    p << (value.getValue().isNegative() ? "-inf" : "inf");
  else
    p << value.getValue();
}
void printReal(llvm::raw_ostream &p, FloatAttr value) {
  p << llvm::format("%g", value.getValueAsDouble());
}

/// Prints for an `AsmPrinter` (which reads back) or a stream (for messages). Parentheses are
/// written around what binds less than `outer`.
template <typename Printer> void print(Printer &p, Attribute expr, int outer, bool inAngles) {
  auto e = dyn_cast<ExprAttr>(expr);
  if (!e) {
    if (auto f = dyn_cast<FloatAttr>(expr))
      printReal(p, f);
    else if (auto b = dyn_cast<BoolAttr>(expr))
      p << (b.getValue() ? "true" : "false");
    else
      p << intValue(expr);
    return;
  }
  ArrayRef<Attribute> args = e.getArgs();
  StringRef head = e.getHead();
  if (args.empty()) {
    p << head;
    return;
  }
  if (StringRef function = comparisonFunction(head); inAngles && !function.empty())
    head = function;
  int own = strength(head, args.size());
  if (own == 7) {
    p << head << '(';
    llvm::interleave(args, [&](Attribute a) { print(p, a, 0, inAngles); }, [&] { p << ", "; });
    p << ')';
    return;
  }
  if (own < outer)
    p << '(';
  if (args.size() == 1) {
    p << head << (head == "not" ? " " : "");
    print(p, args[0], own, inAngles);
  } else {
    print(p, args[0], own == 3 ? own + 1 : own, inAngles);
    p << ' ' << head << ' ';
    print(p, args[1], own + 1, inAngles);
  }
  if (own < outer)
    p << ')';
}

} // namespace

std::string exprText(Attribute expr) {
  std::string out;
  llvm::raw_string_ostream os(out);
  print(os, expr, 0, /*inAngles=*/false);
  return out;
}

namespace {

/// Number of arguments of a function: minimum and maximum; {0, 0} for an unknown name.
std::pair<unsigned, unsigned> arity(StringRef function) {
  return llvm::StringSwitch<std::pair<unsigned, unsigned>>(function)
      .Cases({"ceil", "floor", "round", "real", "sqrt", "exp", "log", "logit", "sigmoid"}, {1, 1})
      .Case("pow", {2, 2})
      .Cases({"min", "max"}, {2, ~0u})
      .Cases({"clamp", "select"}, {3, 3})
      .Default({0, 0});
}

//===-- Parsing -----------------------------------------------------------------------------===//

/// What an expression may have at most, so that no walk over one exhausts the stack. The printed
/// form of an expression nests no deeper than it has operators.
constexpr unsigned kMostOperators = 128, kMostNesting = 512;

class ExprParser {
public:
  explicit ExprParser(AsmParser &parser) : parser(parser) {}

  ParseResult parse(Attribute &e) {
    SMLoc loc = parser.getCurrentLocation();
    if (parseOr(e))
      return failure();
    if (operators <= kMostOperators)
      return success();
    return parser.emitError(loc) << "expression has " << operators
                                 << " operators; expected at most " << kMostOperators;
  }

private:
  ParseResult parseOr(Attribute &e) { return parseChain(e, "or", &ExprParser::parseAnd); }

  Attribute make(StringRef head, ArrayRef<Attribute> args) {
    operators += !args.empty();
    return ExprAttr::get(parser.getContext(), head, args);
  }

  /// Everything that nests passes through here.
  ParseResult nested(Attribute &e, ParseResult (ExprParser::*part)(Attribute &)) {
    if (nesting == kMostNesting)
      return parser.emitError(parser.getCurrentLocation())
             << "expression nests more than " << kMostNesting << " deep";
    ++nesting;
    ParseResult result = (this->*part)(e);
    --nesting;
    return result;
  }

  ParseResult parseChain(Attribute &e, StringRef word,
                         ParseResult (ExprParser::*operand)(Attribute &)) {
    if ((this->*operand)(e))
      return failure();
    while (succeeded(parser.parseOptionalKeyword(word))) {
      Attribute right;
      if ((this->*operand)(right))
        return failure();
      e = make(word, {e, right});
    }
    return success();
  }

  ParseResult parseAnd(Attribute &e) { return parseChain(e, "and", &ExprParser::parseNot); }

  ParseResult parseNot(Attribute &e) {
    if (failed(parser.parseOptionalKeyword("not")))
      return parseComparison(e);
    if (nested(e, &ExprParser::parseNot))
      return failure();
    e = make("not", {e});
    return success();
  }

  ParseResult parseComparison(Attribute &e) {
    if (parseSum(e))
      return failure();
    StringRef op;
    if (succeeded(parser.parseOptionalEqual())) {
      if (parser.parseEqual())
        return failure();
      op = "==";
    } else if (!inAngles && succeeded(parser.parseOptionalLess())) {
      op = succeeded(parser.parseOptionalEqual()) ? "<=" : "<";
    } else if (!inAngles && succeeded(parser.parseOptionalGreater())) {
      op = succeeded(parser.parseOptionalEqual()) ? ">=" : ">";
    } else {
      return success();
    }
    Attribute right;
    if (parseSum(right))
      return failure();
    e = make(op, {e, right});
    return success();
  }

  ParseResult parseSum(Attribute &e) {
    if (parseTerm(e))
      return failure();
    while (true) {
      StringRef op = succeeded(parser.parseOptionalPlus())    ? "+"
                     : succeeded(parser.parseOptionalMinus()) ? "-"
                                                              : "";
      if (op.empty())
        return success();
      Attribute right;
      if (parseTerm(right))
        return failure();
      e = make(op, {e, right});
    }
  }

  ParseResult parseTerm(Attribute &e) {
    if (parseUnary(e))
      return failure();
    while (true) {
      StringRef op = succeeded(parser.parseOptionalStar())    ? "*"
                     : succeeded(parser.parseOptionalSlash()) ? "/"
                                                              : "";
      if (op.empty())
        return success();
      Attribute right;
      if (parseUnary(right))
        return failure();
      e = make(op, {e, right});
    }
  }

  ParseResult parseUnary(Attribute &e) {
    if (succeeded(parser.parseOptionalMinus())) {
      if (nested(e, &ExprParser::parseUnary))
        return failure();
      Builder b(parser.getContext());
      if (isInt(e))
        e = b.getI64IntegerAttr(-intValue(e));
      else if (auto f = dyn_cast<FloatAttr>(e))
        e = b.getF64FloatAttr(-f.getValueAsDouble());
      else
        e = make("-", {e});
      return success();
    }
    return parsePrimary(e);
  }

  ParseResult parsePrimary(Attribute &e) {
    Builder b(parser.getContext());
    if (succeeded(parser.parseOptionalLParen())) {
      return failure(nested(e, &ExprParser::parseOr) || parser.parseRParen());
    }
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (succeeded(parser.parseOptionalKeyword(&name))) {
      if (name == "true" || name == "false") {
        e = b.getBoolAttr(name == "true");
        return success();
      }
      if (name == "inf") {
        e = b.getF64FloatAttr(std::numeric_limits<double>::infinity());
        return success();
      }
      if (failed(parser.parseOptionalLParen())) {
        e = make(name, {});
        return success();
      }
      StringRef head = name;
      auto [low, high] = arity(name);
      for (auto [function, symbol] : kComparisons)
        if (inAngles && function == name) {
          head = symbol;
          low = high = 2;
        }
      if (low == 0)
        return parser.emitError(loc) << "unknown function '" << name << "'";
      SmallVector<Attribute> args;
      auto argument = [&] { return nested(args.emplace_back(), &ExprParser::parseOr); };
      if (parser.parseCommaSeparatedList(argument) || parser.parseRParen())
        return failure();
      if (args.size() < low || args.size() > high)
        return parser.emitError(loc)
               << "'" << name << "' has " << args.size() << " arguments; expected "
               << (high > low ? "at least " : "") << low;
      e = make(head, args);
      return success();
    }
    int64_t integer;
    OptionalParseResult parsed = parser.parseOptionalInteger(integer);
    if (parsed.has_value()) {
      if (failed(*parsed))
        return failure();
      e = b.getI64IntegerAttr(integer);
      return checkNumberEnd(loc);
    }
    if (!isdigit(static_cast<unsigned char>(*loc.getPointer())))
      return parser.emitError(loc) << "expected a number, a symbol or a function";
    double real;
    if (parser.parseFloat(real))
      return failure();
    if (!std::isfinite(real))
      return parser.emitError(loc) << "number is too large";
    e = b.getF64FloatAttr(real);
    return success();
  }

  /// `1e5` would read as the integer 1 and a word.
  ParseResult checkNumberEnd(SMLoc start) {
    const char *end = start.getPointer();
    while (isdigit(static_cast<unsigned char>(*end)))
      ++end;
    if (*end != 'e' && *end != 'E')
      return success();
    return parser.emitError(start)
           << "a real number needs a decimal point, as in "
           << StringRef(start.getPointer(), end - start.getPointer()) << ".0e5";
  }

public:
  /// Inside `#hydra.expr<…>`.
  bool inAngles = false;

private:
  AsmParser &parser;
  unsigned operators = 0, nesting = 0;
};

} // namespace

ParseResult parseExpr(AsmParser &parser, Attribute &expr) { return ExprParser(parser).parse(expr); }
void printExpr(AsmPrinter &printer, Attribute expr) { print(printer, expr, 0, /*inAngles=*/false); }

ParseResult parseExprList(AsmParser &parser, ArrayAttr &list) {
  SmallVector<Attribute> values;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parseExpr(parser, values.emplace_back()); }))
    return failure();
  list = ArrayAttr::get(parser.getContext(), values);
  return success();
}
void printExprList(AsmPrinter &printer, ArrayAttr list) {
  printer << '[';
  llvm::interleaveComma(list, printer, [&](Attribute a) { printExpr(printer, a); });
  printer << ']';
}

Attribute parseLiteral(MLIRContext *context, StringRef text) {
  Builder b(context);
  int64_t integer;
  double real;
  if (text == "true" || text == "false")
    return b.getBoolAttr(text == "true");
  if (!text.getAsInteger(10, integer))
    return b.getI64IntegerAttr(integer);
  if (!text.empty() && (isdigit(text[0]) || text[0] == '-' || text[0] == '.'))
    return !text.getAsDouble(real) && std::isfinite(real) ? Attribute(b.getF64FloatAttr(real))
                                                          : Attribute();
  bool identifier = !text.empty() && llvm::all_of(text, [](char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
  return identifier ? Attribute(b.getStringAttr(text)) : Attribute();
}

//===-- The attribute classes ---------------------------------------------------------------===//

Attribute ExprAttr::parse(AsmParser &parser, Type) {
  Attribute e;
  ExprParser expr(parser);
  expr.inAngles = true;
  if (parser.parseLess() || expr.parse(e) || parser.parseGreater())
    return {};
  if (!isa<ExprAttr>(e)) {
    parser.emitError(parser.getNameLoc(), "expected an expression over symbols");
    return {};
  }
  return e;
}

void ExprAttr::print(AsmPrinter &printer) const {
  printer << '<';
  hydra::print(printer, *this, 0, /*inAngles=*/true);
  printer << '>';
}

static ParseResult parseInit(AsmParser &parser, InitAttr &init, bool inAngles) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef kind;
  SmallVector<Attribute> args;
  if (parser.parseKeyword(&kind))
    return failure();
  auto argument = [&] {
    ExprParser expr(parser);
    expr.inAngles = inAngles;
    return expr.parse(args.emplace_back());
  };
  if (succeeded(parser.parseOptionalLParen()))
    if (parser.parseCommaSeparatedList(argument) || parser.parseRParen())
      return failure();
  init = InitAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), kind,
                              ArrayRef<Attribute>(args));
  return success(static_cast<bool>(init));
}
ParseResult parseInit(AsmParser &parser, InitAttr &init) {
  return parseInit(parser, init, /*inAngles=*/false);
}

static void printInit(AsmPrinter &printer, InitAttr init, bool inAngles) {
  printer << init.getKind();
  if (!init.getArgs().empty()) {
    printer << '(';
    llvm::interleaveComma(init.getArgs(), printer,
                          [&](Attribute a) { hydra::print(printer, a, 0, inAngles); });
    printer << ')';
  }
}
void printInit(AsmPrinter &printer, InitAttr init) { printInit(printer, init, /*inAngles=*/false); }

Attribute InitAttr::parse(AsmParser &parser, Type) {
  InitAttr init;
  if (parser.parseLess() || parseInit(parser, init, /*inAngles=*/true) || parser.parseGreater())
    return {};
  return init;
}
void InitAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printInit(printer, *this, /*inAngles=*/true);
  printer << '>';
}

LogicalResult InitAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef kind,
                               ArrayRef<Attribute> args) {
  int expected = llvm::StringSwitch<int>(kind)
                     .Cases({"zeros", "ones"}, 0)
                     .Cases({"constant", "normal", "uniform", "shuffle"}, 1)
                     .Case("trunc_normal", 2)
                     .Default(-1);
  if (expected < 0)
    return emitError() << "unknown initialiser '" << kind
                       << "'; expected zeros, ones, constant, normal, trunc_normal, uniform or "
                          "shuffle";
  if (static_cast<int>(args.size()) != expected)
    return emitError() << "initialiser '" << kind << "' has " << args.size()
                       << " arguments; expected " << expected;
  for (Attribute a : args)
    if (!isRealOrExpr(a))
      return emitError() << "initialiser '" << kind << "' wants numbers";
  for (Attribute a : args)
    if (!isa<ExprAttr>(a) && !std::isfinite(static_cast<float>(realValue(a))))
      return emitError() << "initialiser '" << kind << "' has a number that f32 does not hold";
  auto below = [&](size_t i, double limit) {
    return !isa<ExprAttr>(args[i]) && realValue(args[i]) < limit;
  };
  if ((kind == "normal" || kind == "trunc_normal" || kind == "uniform") && below(0, 0.0))
    return emitError() << "initialiser '" << kind << "' has a negative width";
  if (kind == "trunc_normal" && below(1, std::numeric_limits<double>::min()))
    return emitError() << "initialiser 'trunc_normal' is cut at a number that is not positive";
  return success();
}

} // namespace hydra
