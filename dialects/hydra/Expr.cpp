// Printing and parsing of symbol expressions.
#include "dialects/hydra/Expr.h"
#include "dialects/hydra/ExprParser.h"
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

Attribute substitute(Attribute expr, llvm::function_ref<Attribute(StringRef)> value) {
  auto all = [&](ArrayRef<Attribute> args) {
    return llvm::map_to_vector(args, [&](Attribute a) { return substitute(a, value); });
  };
  if (auto array = dyn_cast<ArrayAttr>(expr))
    return ArrayAttr::get(expr.getContext(), all(array.getValue()));
  auto e = dyn_cast<ExprAttr>(expr);
  if (!e)
    return expr;
  if (!e.getArgs().empty())
    return ExprAttr::get(expr.getContext(), e.getHead(), all(e.getArgs()));
  Attribute replaced = value(e.getHead());
  return replaced ? replaced : expr;
}

//===-- Printing ----------------------------------------------------------------------------===//

namespace {

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
  const APFloat &x = value.getValue();
  if (x.isInfinity()) {
    p << (x.isNegative() ? "-inf" : "inf");
    return;
  }
  // MLIR has bits for whole numbers of many digits, which would not read back.
  SmallString<32> seven, all;
  x.toString(seven, /*FormatPrecision=*/6, /*FormatMaxPadding=*/0, /*TruncateZero=*/false);
  x.toString(all);
  if (StringRef(all).contains('.') || APFloat(x.getSemantics(), seven).bitwiseIsEqual(x))
    p << x;
  else
    p << all << ".0";
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
  if (own == kStrongest) {
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
    print(p, args[0], isComparison(own) ? own + 1 : own, inAngles);
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

static ParseResult parseExpr(AsmParser &parser, Attribute &expr, bool inAngles) {
  ExprParser::Term term;
  if (ExprParser(parser, inAngles).parse(term))
    return failure();
  expr = term.symbolic();
  return success();
}

ParseResult parseExpr(AsmParser &parser, Attribute &expr) {
  return parseExpr(parser, expr, /*inAngles=*/false);
}
void printExpr(AsmPrinter &printer, Attribute expr) { printExpr(printer, expr, 0); }
void printExpr(AsmPrinter &printer, Attribute expr, int outer) {
  print(printer, expr, outer, /*inAngles=*/false);
}

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
  if (parser.parseLess() || parseExpr(parser, e, /*inAngles=*/true) || parser.parseGreater())
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
  StringRef word;
  SmallVector<Attribute> args;
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<InitKind> kind = symbolizeInitKind(word);
  if (!kind)
    return parser.emitError(loc) << "unknown initialiser '" << word
                                 << "'; expected zeros, ones, constant, normal, trunc_normal, "
                                    "uniform or shuffle";
  auto argument = [&] { return parseExpr(parser, args.emplace_back(), inAngles); };
  if (succeeded(parser.parseOptionalLParen()))
    if (parser.parseCommaSeparatedList(argument) || parser.parseRParen())
      return failure();
  init = InitAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), *kind,
                              ArrayRef<Attribute>(args));
  return success(static_cast<bool>(init));
}
ParseResult parseInit(AsmParser &parser, InitAttr &init) {
  return parseInit(parser, init, /*inAngles=*/false);
}

static void printInit(AsmPrinter &printer, InitAttr init, bool inAngles) {
  printer << stringifyInitKind(init.getKind());
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

static size_t argumentsOf(InitKind kind) {
  switch (kind) {
  case InitKind::zeros:
  case InitKind::ones:
    return 0;
  case InitKind::constant:
  case InitKind::normal:
  case InitKind::uniform:
  case InitKind::shuffle:
    return 1;
  case InitKind::trunc_normal:
    return 2;
  }
  llvm_unreachable("an initialiser");
}

LogicalResult InitAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, InitKind form,
                               ArrayRef<Attribute> args) {
  const StringRef kind = stringifyInitKind(form);
  const size_t expected = argumentsOf(form);
  if (args.size() != expected)
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
  const bool hasWidth =
      form == InitKind::normal || form == InitKind::trunc_normal || form == InitKind::uniform;
  if (hasWidth && below(0, 0.0))
    return emitError() << "initialiser '" << kind << "' has a negative width";
  if (form == InitKind::trunc_normal && below(1, std::numeric_limits<double>::min()))
    return emitError() << "initialiser 'trunc_normal' is cut at a number that is not positive";
  return success();
}

} // namespace hydra
