// Symbols and the values that files give them: text and verification.
#include "dialects/hydra/SymbolLists.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace hydra {

//===-- Names and values --------------------------------------------------------------------===//

/// Says what is wrong with `value` for a symbol of that kind; empty when nothing is.
std::string checkSymbolValue(Attribute value, SymbolKind kind, ArrayAttr options) {
  auto integer = dyn_cast<IntegerAttr>(value);
  bool isFlag = isa<BoolAttr>(value);
  switch (kind) {
  case SymbolKind::dim:
    return integer && !isFlag && integer.getInt() >= 0 ? "" : "a non-negative integer";
  case SymbolKind::real:
    return isa<FloatAttr>(value) || (integer && !isFlag) ? "" : "a number";
  case SymbolKind::flag:
    return isFlag ? "" : "true or false";
  case SymbolKind::choice:
    break;
  }
  if (llvm::is_contained(options, value))
    return "";
  return "one of " + llvm::join(llvm::map_range(options.getAsValueRange<StringAttr>(),
                                                [](StringRef s) { return s.str(); }),
                                ", ");
}

LogicalResult verifyName(Operation *op, StringRef name) {
  auto isControl = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (!name.empty() && llvm::json::isUTF8(name) && llvm::none_of(name, isControl))
    return success();
  return op->emitOpError("has a name that is empty or no text");
}

bool isWord(StringRef name) {
  return !name.empty() && !isdigit(static_cast<unsigned char>(name[0])) &&
         llvm::all_of(name, [](unsigned char c) { return isalnum(c) || c == '_'; });
}

LogicalResult verifySymbolName(Operation *op, StringRef name) {
  if (!isWord(name))
    return op->emitOpError() << "'" << name << "' is no name for a symbol";
  if (llvm::is_contained({StringRef(kLayerSymbol), StringRef(kIndexSymbol), StringRef(kRowsSymbol),
                          StringRef(kContinuedSymbol), StringRef(kLengthSymbol), StringRef("true"),
                          StringRef("false"), StringRef("and"), StringRef("or"), StringRef("not"),
                          StringRef("inf")},
                         name))
    return op->emitOpError() << "'" << name << "' is reserved";
  return success();
}

//===-- Lists of symbols --------------------------------------------------------------------===//

ParseResult parseAssignment(OpAsmParser &parser, std::string &name, Attribute &value,
                            bool required) {
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  name = keyword.str();
  if (required ? failed(parser.parseEqual()) : failed(parser.parseOptionalEqual()))
    return failure(required);
  return parseExpr(parser, value);
}

Attribute literal(Attribute expr) {
  if (auto e = dyn_cast<ExprAttr>(expr))
    return e.getArgs().empty() ? StringAttr::get(expr.getContext(), e.getHead()) : Attribute();
  return expr;
}

void printLiteral(OpAsmPrinter &p, Attribute value) {
  if (auto option = dyn_cast<StringAttr>(value))
    p << option.getValue();
  else
    printExpr(p, value);
}

ParseResult SymbolLists::parse(OpAsmParser &parser) {
  Builder &b = parser.getBuilder();
  StringRef list;
  while (!atOperation(parser) && succeeded(parser.parseOptionalKeyword(&list))) {
    std::optional<SymbolKind> kind;
    if (list.ends_with("s")) // the list of a kind is called by its plural
      kind = symbolizeSymbolKind(list.drop_back());
    if (!kind)
      return parser.emitError(parser.getNameLoc())
             << "unknown kind of symbols '" << list << "'; expected dims, reals, flags or choices";
    auto one = [&]() -> ParseResult {
      SMLoc loc = parser.getCurrentLocation();
      std::string name;
      Attribute value;
      if (parseAssignment(parser, name, value, /*required=*/false))
        return failure();
      value = value ? literal(value) : b.getUnitAttr();
      if (!value)
        return parser.emitError(loc) << "the default of '" << name << "' is not a literal";
      SmallVector<Attribute> choices;
      auto option = [&]() -> ParseResult {
        StringRef word;
        if (parser.parseKeyword(&word))
          return failure();
        choices.push_back(b.getStringAttr(word));
        return success();
      };
      if (kind == SymbolKind::choice &&
          (parser.parseKeyword("of") ||
           parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, option)))
        return failure();
      names.push_back(b.getStringAttr(name));
      kinds.push_back(SymbolKindAttr::get(b.getContext(), *kind));
      defaults.push_back(value);
      options.push_back(b.getArrayAttr(choices));
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
      return failure();
  }
  return success();
}

void SymbolLists::print(OpAsmPrinter &p) const {
  for (size_t i = 0; i < names.size();) {
    const SymbolKind kind = cast<SymbolKindAttr>(kinds[i]).getValue();
    p << ' ' << stringifySymbolKind(kind) << "s(";
    for (bool first = true; i < names.size() && cast<SymbolKindAttr>(kinds[i]).getValue() == kind;
         ++i, first = false) {
      p << (first ? "" : ", ") << cast<StringAttr>(names[i]).getValue();
      if (!isa<UnitAttr>(defaults[i])) {
        p << " = ";
        printLiteral(p, defaults[i]);
      }
      if (kind == SymbolKind::choice) {
        p << " of (";
        llvm::interleaveComma(cast<ArrayAttr>(options[i]), p,
                              [&](Attribute option) { p << cast<StringAttr>(option).getValue(); });
        p << ')';
      }
    }
    p << ')';
  }
}

LogicalResult SymbolLists::verify(Operation *op) const {
  size_t n = names.size();
  if (kinds.size() != n || defaults.size() != n || options.size() != n)
    return op->emitOpError() << "has " << n
                             << " names but kinds, defaults or options for another number";
  for (auto [nameAttr, kindAttr, value, optionsAttr] : llvm::zip(names, kinds, defaults, options)) {
    StringRef name = cast<StringAttr>(nameAttr);
    auto list = dyn_cast<ArrayAttr>(optionsAttr);
    if (!list || !llvm::all_of(list, llvm::IsaPred<StringAttr>))
      return op->emitOpError("has options that are not lists of names");
    for (StringRef option : list.getAsValueRange<StringAttr>())
      if (failed(verifySymbolName(op, option)))
        return failure();
    if (failed(verifySymbolName(op, name)))
      return failure();
    if (isa<UnitAttr>(value))
      continue;
    std::string want = checkSymbolValue(value, cast<SymbolKindAttr>(kindAttr).getValue(), list);
    if (!want.empty())
      return op->emitOpError() << "the default of '" << name << "' is not " << want;
  }
  return success();
}

//===-- symbols, derive ---------------------------------------------------------------------===//

static SymbolLists listsOf(SymbolsOp op) {
  return {llvm::to_vector(op.getNames()), llvm::to_vector(op.getKinds()),
          llvm::to_vector(op.getDefaults()), llvm::to_vector(op.getOptions())};
}

ParseResult SymbolsOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &b = parser.getBuilder();
  SymbolLists lists;
  if (lists.parse(parser))
    return failure();
  state.addAttribute("names", b.getArrayAttr(lists.names));
  state.addAttribute("kinds", b.getArrayAttr(lists.kinds));
  state.addAttribute("defaults", b.getArrayAttr(lists.defaults));
  state.addAttribute("options", b.getArrayAttr(lists.options));
  return success();
}
void SymbolsOp::print(OpAsmPrinter &p) { listsOf(*this).print(p); }
LogicalResult SymbolsOp::verify() { return listsOf(*this).verify(*this); }

ParseResult DeriveOp::parse(OpAsmParser &parser, OperationState &state) {
  std::string name;
  Attribute value;
  if (parseAssignment(parser, name, value, /*required=*/true))
    return failure();
  state.addAttribute("symbol", parser.getBuilder().getStringAttr(name));
  state.addAttribute("value", value);
  return success();
}
LogicalResult DeriveOp::verify() { return verifySymbolName(*this, getSymbol()); }
void DeriveOp::print(OpAsmPrinter &p) {
  p << ' ' << getSymbol() << " = ";
  printExpr(p, getValue());
}

} // namespace hydra
