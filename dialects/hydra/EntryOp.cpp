// Entries: programs and bodies of loops.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"

using namespace mlir;

namespace hydra {

namespace {

/// The arguments of an entry.
struct ParsedArguments {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> names, shapes, dtypes, defaults;

  /// One more: `%name: [B, S] i32`, or with a static type, and maybe `= value`.
  ParseResult parse(OpAsmParser &parser);

private:
  ParseResult parseType(OpAsmParser &parser, Type &type);
};

} // namespace

/// Static, or a shape of expressions and the type of its elements.
ParseResult ParsedArguments::parseType(OpAsmParser &parser, Type &type) {
  Builder &b = parser.getBuilder();
  SMLoc loc = parser.getCurrentLocation();
  OptionalParseResult bound = parser.parseOptionalType(type);
  if (bound.has_value()) {
    if (failed(*bound))
      return failure();
    if (std::string problem = checkTensorType(type); !problem.empty())
      return parser.emitError(loc)
             << problem << "; expected a shape like [B, S] or a static tensor type";
    auto tensor = cast<RankedTensorType>(type);
    shapes.push_back(b.getI64ArrayAttr(tensor.getShape()));
    dtypes.push_back(TypeAttr::get(tensor.getElementType()));
    return success();
  }
  ArrayAttr shape;
  Type elements;
  if (parseExprList(parser, shape) || parser.parseType(elements))
    return failure();
  type = AnyType::get(parser.getContext());
  shapes.push_back(shape);
  dtypes.push_back(TypeAttr::get(elements));
  return success();
}

ParseResult ParsedArguments::parse(OpAsmParser &parser) {
  Builder &b = parser.getBuilder();
  OpAsmParser::Argument &argument = arguments.emplace_back();
  if (parser.parseArgument(argument) || parser.parseColon())
    return failure();
  names.push_back(b.getStringAttr(argument.ssaName.name.drop_front()));
  defaults.push_back(b.getUnitAttr());
  if (parseType(parser, argument.type))
    return failure();
  return failed(parser.parseOptionalEqual()) ? success() : parseExpr(parser, defaults.back());
}

/// `keyword(word)`, if it is there: the attribute of that name.
template <typename EnumAttr>
static ParseResult parseOptionalWord(OpAsmParser &parser, OperationState &state,
                                     StringRef keyword) {
  using Enum = decltype(EnumAttr().getValue());
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  StringRef word;
  SMLoc loc;
  if (parser.parseLParen() || parser.getCurrentLocation(&loc) || parser.parseKeyword(&word) ||
      parser.parseRParen())
    return failure();
  std::optional<Enum> value = symbolizeEnum<Enum>(word);
  if (!value)
    return parser.emitError(loc) << "unknown " << keyword << " '" << word << "' of a program";
  state.addAttribute(keyword, EnumAttr::get(parser.getContext(), *value));
  return success();
}

/// `keyword` and an attribute in its own syntax, if they are there: the attribute of that name.
template <typename Attr>
static ParseResult parseOptionalAttr(OpAsmParser &parser, OperationState &state,
                                     StringRef keyword) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  Attr attribute;
  if (parser.parseCustomAttributeWithFallback(attribute))
    return failure();
  state.addAttribute(keyword, attribute);
  return success();
}

/// `ids(0, 1)`, if it is there.
static ParseResult parseOptionalIds(OpAsmParser &parser, OperationState &state) {
  if (failed(parser.parseOptionalKeyword("ids")))
    return success();
  SmallVector<int64_t> ids;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     [&] { return parser.parseInteger(ids.emplace_back()); }))
    return failure();
  state.addAttribute("ids", parser.getBuilder().getDenseI64ArrayAttr(ids));
  return success();
}

/// `dims(B, S)`, if it is there: symbols of the entry itself.
static ParseResult parseOptionalDims(OpAsmParser &parser, SmallVectorImpl<Attribute> &dims) {
  if (failed(parser.parseOptionalKeyword("dims")))
    return success();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    dims.push_back(parser.getBuilder().getStringAttr(word));
    return success();
  });
}

/// The block of arguments and operations, which ends in hydra.return.
static ParseResult parseEntryBody(OpAsmParser &parser, OperationState &state, StringRef name,
                                  ArrayRef<OpAsmParser::Argument> arguments) {
  Region *body = state.addRegion();
  if (parseBody(parser, *body, arguments))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  if (body->front().empty() || !isa<ReturnOp>(body->front().back()))
    return parser.emitError(parser.getNameLoc()) << "@" << name << " does not end in hydra.return";
  return success();
}

ParseResult EntryOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &b = parser.getBuilder();
  StringAttr name;
  SmallVector<Attribute> dims;
  ParsedArguments parsed;
  if (parser.parseSymbolName(name) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     [&] { return parsed.parse(parser); }) ||
      parseOptionalDims(parser, dims) ||
      parseOptionalWord<ProgramStageAttr>(parser, state, "stage") ||
      parseOptionalWord<ProgramRoleAttr>(parser, state, "role") ||
      parseOptionalIds(parser, state) || parseOptionalAttr<ScanAttr>(parser, state, "scan") ||
      parseOptionalAttr<RowsAttr>(parser, state, "rows") ||
      parseEntryBody(parser, state, name.getValue(), parsed.arguments))
    return failure();
  state.addAttribute("sym_name", name);
  state.addAttribute("arg_names", b.getArrayAttr(parsed.names));
  state.addAttribute("arg_shapes", b.getArrayAttr(parsed.shapes));
  state.addAttribute("arg_dtypes", b.getArrayAttr(parsed.dtypes));
  state.addAttribute("arg_defaults", b.getArrayAttr(parsed.defaults));
  state.addAttribute("dims", b.getArrayAttr(dims));
  return success();
}

void EntryOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << '(';
  for (auto [i, argument] : llvm::enumerate(getBody().getArguments())) {
    p << (i ? ", " : "") << argument << ": ";
    if (isUnbound(argument.getType())) {
      printExprList(p, cast<ArrayAttr>(getArgShapes()[i]));
      p << ' ' << cast<TypeAttr>(getArgDtypes()[i]).getValue();
    } else {
      p << argument.getType();
    }
    if (Attribute value = getArgDefaults()[i]; !isa<UnitAttr>(value)) {
      p << " = ";
      printExpr(p, value);
    }
  }
  p << ')';
  if (!getDims().empty()) {
    p << " dims(";
    llvm::interleaveComma(getDims().getAsValueRange<StringAttr>(), p);
    p << ')';
  }
  if (getStage())
    p << " stage(" << stringifyProgramStage(*getStage()) << ')';
  if (getRole())
    p << " role(" << stringifyProgramRole(*getRole()) << ')';
  if (getIds()) {
    p << " ids(";
    llvm::interleaveComma(*getIds(), p);
    p << ')';
  }
  if (getScan()) {
    p << " scan ";
    p.printStrippedAttrOrType(*getScan());
  }
  if (getRows()) {
    p << " rows ";
    p.printStrippedAttrOrType(*getRows());
  }
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// Whether the body of a loop has the arguments and results that its `scan` says.
static LogicalResult verifyScan(EntryOp entry) {
  ScanAttr scan = *entry.getScan();
  const size_t over = scan.getOver().size(), stacked = scan.getStacked().size();
  ReturnOp end = entry.getReturn();
  auto unbound = [](Value v) { return isUnbound(v.getType()); };
  if (llvm::any_of(entry.getBody().getArguments(), unbound) ||
      llvm::any_of(end.getValues(), unbound))
    return entry.emitOpError("is the body of a loop, but not bound");
  constexpr int64_t kMostIterations = int64_t{1} << 30;
  if (scan.getCount() < 1 || scan.getCount() > kMostIterations || scan.getCarried() < 0)
    return entry.emitOpError() << "iterates " << scan.getCount() << " times and carries "
                               << scan.getCarried() << " values";
  if (over + scan.getCarried() > entry.getBody().getNumArguments() ||
      stacked + scan.getCarried() != end.getOutputs().size() || !end.getUpdated().empty())
    return entry.emitOpError() << "has " << entry.getBody().getNumArguments() << " arguments and "
                               << end.getOutputs().size() << " results; expected at least "
                               << over + scan.getCarried() << ", and "
                               << stacked + scan.getCarried();
  auto hasAxis = [](Value v, int64_t axis) {
    return axis >= 0 && axis < static_cast<int64_t>(build::shapeOf(v).size());
  };
  for (auto [argument, axis] : llvm::zip(entry.getBody().getArguments(), scan.getOver()))
    if (!hasAxis(argument, axis))
      return entry.emitOpError() << "loops over axis " << axis << " of " << argument.getType();
  for (auto [value, axis] : llvm::zip(end.getOutputs(), scan.getStacked()))
    if (!hasAxis(value, axis))
      return entry.emitOpError() << "joins axis " << axis << " of " << value.getType();
  for (auto [argument, value] : llvm::zip(entry.getBody().getArguments().drop_front(over),
                                          end.getOutputs().drop_front(stacked)))
    if (argument.getType() != value.getType())
      return entry.emitOpError() << "carries " << argument.getType() << " on as "
                                 << value.getType();
  return success();
}

/// Whether the dimensions of the batch are some of arguments and outputs.
static LogicalResult verifyRows(EntryOp entry) {
  RowsAttr rows = *entry.getRows();
  auto areDimensions = [](ArrayRef<int64_t> dims, ValueRange values) {
    return dims.size() == values.size() && llvm::all_of(llvm::zip(dims, values), [](auto pair) {
             auto [dim, value] = pair;
             return !isUnbound(value.getType()) && dim >= -1 &&
                    dim < static_cast<int64_t>(build::shapeOf(value).size());
           });
  };
  if (entry.getScan())
    return entry.emitOpError("is the body of a loop, which has no batch of its own");
  if (rows.getRanks() < 1 || !areDimensions(rows.getArguments(), entry.getBody().getArguments()) ||
      (!rows.getResults().empty() &&
       !areDimensions(rows.getResults(), entry.getReturn().getOutputs())))
    return entry.emitOpError("has rows that are no dimensions of its arguments and outputs");
  return success();
}

LogicalResult EntryOp::verify() {
  if (failed(verifyName(*this, getSymName())))
    return failure();
  size_t n = getBody().getNumArguments();
  for (ArrayAttr list : {getArgNames(), getArgShapes(), getArgDtypes(), getArgDefaults()})
    if (list.size() != n)
      return emitOpError() << "has " << n << " arguments but names, shapes, types or defaults for "
                           << list.size();
  StringSet<> names;
  for (StringRef name : getArgNames().getAsValueRange<StringAttr>())
    if (!names.insert(name).second)
      return emitOpError() << "argument '" << name << "' is declared twice";
    else if (name.empty() || isdigit(static_cast<unsigned char>(name[0])))
      return emitOpError() << "argument '" << name << "' needs a name that begins with a letter";
  for (auto [argument, name, shape, dtype, value] :
       llvm::zip(getBody().getArguments(), getArgNames().getAsValueRange<StringAttr>(),
                 getArgShapes(), getArgDtypes(), getArgDefaults())) {
    Type element = cast<TypeAttr>(dtype).getValue();
    if (isProgram() && !isModelElement(element))
      return emitOpError() << "argument '" << name << "' has elements of " << element
                           << "; expected " << kModelElements;
    if (!isIntListOrExprs(shape))
      return emitOpError() << "argument '" << name
                           << "' has a shape that is not a list of integers";
    if (!isa<UnitAttr>(value)) {
      if (!isRealOrExpr(value))
        return emitOpError() << "argument '" << name << "' has a default that is not a number";
      if (element.isInteger(32) && isa<FloatAttr>(value))
        return emitOpError() << "argument '" << name << "' has a default that is not an integer";
      if (!isa<ExprAttr>(value) && !isNumberOf(element, realValue(value)))
        return emitOpError() << "argument '" << name << "' has the default "
                             << numberText(realValue(value)) << ", which is no number of "
                             << element;
      if (!cast<ArrayAttr>(shape).empty() || getScan())
        return emitOpError() << "argument '" << name << "' has a default, but is not one number";
    }
    if (isUnbound(argument.getType())) {
      if (name.find_first_of(".-") != StringRef::npos) // which mean something in arithmetic
        return emitOpError() << "argument '" << name << "' needs a name without '.' and '-'";
      continue;
    }
    auto list = cast<ArrayAttr>(shape);
    if (hasExpr(list) || argument.getType() != RankedTensorType::get(intList(list), element))
      return emitOpError() << "argument '" << name << "' is " << argument.getType()
                           << " but its shape and element type are others";
  }
  llvm::StringSet<> dims;
  for (StringRef dim : getDims().getAsValueRange<StringAttr>()) {
    if (failed(verifySymbolName(*this, dim)))
      return failure();
    if (!dims.insert(dim).second)
      return emitOpError() << "dimension '" << dim << "' is declared twice";
  }
  if (getIds() && getIds()->size() != n)
    return emitOpError() << "has " << n << " arguments but bounds for " << getIds()->size();
  if (getRole() && *getRole() < ProgramRole::eval)
    return emitOpError() << "has the role '" << stringifyProgramRole(*getRole())
                         << "', which its stage says; expected eval, generate or decode";
  if (getRows() && failed(verifyRows(*this)))
    return failure();
  return getScan() ? verifyScan(*this) : success();
}

void EntryOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (auto [argument, name] :
       llvm::zip(region.getArguments(), getArgNames().getAsValueRange<StringAttr>()))
    setName(argument, name);
}

ProgramRole EntryOp::programRole() {
  const ProgramRole own = getRole().value_or(ProgramRole::custom);
  if (!getStage())
    return own;
  switch (*getStage()) {
  case ProgramStage::grad: // gradients that nothing uses
    return own;
  case ProgramStage::train:
    return ProgramRole::train;
  case ProgramStage::count:
    return ProgramRole::count;
  case ProgramStage::accumulate:
    return ProgramRole::accumulate;
  case ProgramStage::apply:
    return ProgramRole::apply;
  case ProgramStage::derive:
    return ProgramRole::derive;
  }
  llvm_unreachable("every stage");
}

ReturnOp EntryOp::getReturn() { return cast<ReturnOp>(getBody().front().getTerminator()); }

std::optional<double> EntryOp::getDefault(unsigned number) {
  Attribute value = getArgDefaults()[number];
  return isa<UnitAttr>(value) ? std::nullopt : std::optional(realValue(value));
}

BlockArgument EntryOp::addArgument(StringRef name, RankedTensorType type, Location loc,
                                   Attribute value) {
  Builder b(getContext());
  auto append = [](ArrayAttr list, Attribute value) {
    SmallVector<Attribute> values(list.begin(), list.end());
    values.push_back(value);
    return ArrayAttr::get(list.getContext(), values);
  };
  setArgNamesAttr(append(getArgNames(), b.getStringAttr(name)));
  setArgShapesAttr(append(getArgShapes(), b.getI64ArrayAttr(type.getShape())));
  setArgDtypesAttr(append(getArgDtypes(), TypeAttr::get(type.getElementType())));
  setArgDefaultsAttr(append(getArgDefaults(), value ? value : b.getUnitAttr()));
  if (getIds()) {
    SmallVector<int64_t> ids(*getIds());
    ids.push_back(0);
    setIds(ids);
  }
  if (getRows()) {
    SmallVector<int64_t> dims(getRows()->getArguments());
    dims.push_back(-1);
    setRowsAttr(RowsAttr::get(getContext(), getRows()->getRanks(), dims, getRows()->getResults()));
  }
  return getBody().addArgument(type, loc);
}

void EntryOp::eraseArgument(unsigned number) {
  auto without = [&](ArrayAttr list) {
    SmallVector<Attribute> values(list.begin(), list.end());
    values.erase(values.begin() + number);
    return ArrayAttr::get(list.getContext(), values);
  };
  setArgNamesAttr(without(getArgNames()));
  setArgShapesAttr(without(getArgShapes()));
  setArgDtypesAttr(without(getArgDtypes()));
  setArgDefaultsAttr(without(getArgDefaults()));
  if (getIds()) {
    SmallVector<int64_t> ids(*getIds());
    ids.erase(ids.begin() + number);
    setIds(ids);
  }
  if (getRows()) {
    SmallVector<int64_t> dims(getRows()->getArguments());
    dims.erase(dims.begin() + number);
    setRowsAttr(RowsAttr::get(getContext(), getRows()->getRanks(), dims, getRows()->getResults()));
  }
  getBody().eraseArgument(number);
}

void EntryOp::setArgumentType(unsigned number, RankedTensorType type) {
  auto with = [&](ArrayAttr list, Attribute value) {
    SmallVector<Attribute> values(list.begin(), list.end());
    values[number] = value;
    return ArrayAttr::get(list.getContext(), values);
  };
  setArgShapesAttr(with(getArgShapes(), Builder(getContext()).getI64ArrayAttr(type.getShape())));
  setArgDtypesAttr(with(getArgDtypes(), TypeAttr::get(type.getElementType())));
  getBody().getArgument(number).setType(type);
}

/// A tensor of so many of these side by side along an axis.
static RankedTensorType repeated(RankedTensorType type, int64_t axis, int64_t count) {
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] *= count;
  return type.clone(shape);
}

RankedTensorType EntryOp::wholeType(BlockArgument argument) {
  RankedTensorType type = build::typeOf(argument);
  if (!getScan() || argument.getArgNumber() >= getScan()->getOver().size())
    return type;
  return repeated(type, getScan()->getOver()[argument.getArgNumber()], getScan()->getCount());
}

RankedTensorType EntryOp::wholeResultType(unsigned result) {
  RankedTensorType type = build::typeOf(getReturn().getOutputs()[result]);
  if (!getScan() || result >= getScan()->getStacked().size())
    return type;
  return repeated(type, getScan()->getStacked()[result], getScan()->getCount());
}

RankedTensorType EntryOp::batchType(unsigned argument) {
  RankedTensorType type = build::typeOf(getBody().getArgument(argument));
  const int64_t dim = batchDimension(argument);
  return dim < 0 ? type : repeated(type, dim, ranks());
}

} // namespace hydra
