// Parsing and printing of value operations, their common verifier, and type inference helpers.
#include "dialects/hydra/ValueSyntax.h"
#include "dialects/hydra/Hydra.h"
#include "dialects/hydra/NumberFormats.h"

#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

std::string shapeText(ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(llvm::map_range(shape, [](int64_t d) { return std::to_string(d); }), ", ") +
         "]";
}

std::string numberText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

bool isNumberOf(Type element, double value) {
  if (isa<FloatType>(element)) {
    APFloat rounded(value);
    bool loses;
    rounded.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                    &loses);
    return rounded.isInfinity() == std::isinf(value);
  }
  if (element.isInteger(1))
    return value == 0.0 || value == 1.0;
  return value == std::trunc(value) && value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

bool isUnbound(Type type) { return isa<AnyType>(type); }

/// Elements that a tensor has at most: as f32 they fill the 2^47 bytes that a process can address
/// on x86-64, and a GPU with it. Far from where products with a width or sums of sizes overflow.
static constexpr int64_t kMostElements = int64_t(1) << 45;

/// As a plan has it.
static constexpr size_t kMostDimensions = 8;

static std::string checkPositive(ArrayRef<int64_t> shape) {
  bool positive = llvm::all_of(shape, [](int64_t d) { return d >= 1; });
  return positive ? "" : shapeText(shape) + " has a dimension that is not positive";
}

std::string checkShape(ArrayRef<int64_t> shape) {
  if (shape.size() > kMostDimensions)
    return shapeText(shape) + " has " + std::to_string(shape.size()) +
           " dimensions; expected at most " + std::to_string(kMostDimensions);
  if (std::string problem = checkPositive(shape); !problem.empty())
    return problem;
  if (RefTensor::elements(shape) > kMostElements)
    return shapeText(shape) + " has more than 2^45 elements, which no process can address";
  return "";
}

//===-- Text --------------------------------------------------------------------------------===//

/// Also types that no operation takes: it says so better than a symbol of that name would.
static Type parseElementType(AsmParser &parser, StringRef word) {
  for (const support::NumberFormat &format : support::numberFormats())
    if (word == StringRef(support::irName(format.dtype)))
      return elementType(parser.getContext(), format.dtype);
  return {};
}

bool atOperation(OpAsmParser &parser) {
  // The lexer's buffer ends with a zero byte, which ends this loop too.
  for (const char *c = parser.getCurrentLocation().getPointer();
       isalnum(static_cast<unsigned char>(*c)) || *c == '_' || *c == '.'; ++c)
    if (*c == '.')
      return true;
  return false;
}

ParseResult parseAttributes(OpAsmParser &parser, OperationState &state,
                            ArrayRef<StringRef> attributeNames) {
  StringRef name;
  while (true) {
    SMLoc loc = parser.getCurrentLocation();
    if (atOperation(parser) || failed(parser.parseOptionalKeyword(&name)))
      return state.name.verifyInherentAttrs(state.attributes,
                                            [&] { return parser.emitError(parser.getNameLoc()); });
    if (!llvm::is_contained(attributeNames, name)) {
      auto known = attributeNames.empty() ? std::string("none") : llvm::join(attributeNames, ", ");
      return parser.emitError(loc)
             << "unknown attribute '" << name << "' of " << state.name << "; it has: " << known;
    }
    if (parseAttribute(parser, name, loc, state.attributes))
      return failure();
  }
}

static ParseResult parseAttributeValue(OpAsmParser &parser, Attribute &value) {
  std::string text;
  if (succeeded(parser.parseOptionalString(&text))) {
    value = parser.getBuilder().getStringAttr(text);
  } else if (succeeded(parser.parseOptionalLSquare())) {
    SmallVector<Attribute> values;
    if (failed(parser.parseOptionalRSquare()))
      if (parser.parseCommaSeparatedList(
              [&] { return parseExpr(parser, values.emplace_back()); }) ||
          parser.parseRSquare())
        return failure();
    value = parser.getBuilder().getArrayAttr(values);
  } else if (parseExpr(parser, value)) {
    return failure();
  }
  // Element types read as symbols of that name.
  if (auto e = dyn_cast<ExprAttr>(value))
    if (Type type = parseElementType(parser, e.getHead()))
      value = TypeAttr::get(type);
  return success();
}

ParseResult parseAttribute(OpAsmParser &parser, StringRef name, SMLoc loc,
                           NamedAttrList &attributes) {
  if (attributes.get(name))
    return parser.emitError(loc) << "attribute '" << name << "' is given twice";
  Attribute value = parser.getBuilder().getUnitAttr();
  if (succeeded(parser.parseOptionalEqual()) && parseAttributeValue(parser, value))
    return failure();
  attributes.append(name, value);
  return success();
}

void printAttribute(OpAsmPrinter &p, StringRef name, Attribute value) {
  p << name;
  if (isa<UnitAttr>(value))
    return;
  p << " = ";
  if (auto list = dyn_cast<ArrayAttr>(value))
    printExprList(p, list);
  else if (auto type = dyn_cast<TypeAttr>(value))
    p << type.getValue();
  else if (auto string = dyn_cast<StringAttr>(value))
    p << string;
  else
    printExpr(p, value);
}

static void printAttributes(OpAsmPrinter &p, Operation *op) {
  for (StringAttr name : op->getRegisteredInfo()->getAttributeNames())
    if (Attribute value = op->getAttr(name)) {
      p << ' ';
      printAttribute(p, name, value);
    }
}

ParseResult parseBindings(OpAsmParser &parser, StringRef word,
                          SmallVectorImpl<OpAsmParser::Argument> &arguments,
                          SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  if (failed(parser.parseOptionalKeyword(word)))
    return success();
  return parser.parseAssignmentList(arguments, operands);
}

void printBindings(OpAsmPrinter &p, StringRef word, ValueRange arguments, ValueRange operands) {
  if (operands.empty())
    return;
  p << ' ' << word << '(';
  for (auto [i, argument, operand] : llvm::enumerate(arguments, operands))
    p << (i ? ", " : "") << argument << " = " << operand;
  p << ')';
}

ParseResult parseBody(OpAsmParser &parser, Region &body,
                      ArrayRef<OpAsmParser::Argument> arguments) {
  constexpr unsigned kMostNesting = 64;
  static thread_local unsigned nesting = 0;
  if (nesting == kMostNesting)
    return parser.emitError(parser.getCurrentLocation())
           << "regions nest more than " << kMostNesting << " deep";
  ++nesting;
  ParseResult result = parser.parseRegion(body, arguments);
  --nesting;
  return result;
}

FailureOr<size_t> parsedResults(OpAsmParser &parser) {
  constexpr size_t kMostResults = 4096;
  if (parser.getNumResults() <= kMostResults)
    return parser.getNumResults();
  return parser.emitError(parser.getNameLoc())
         << parser.getNumResults() << " results; expected at most " << kMostResults;
}

ParseResult parseOperandTypes(OpAsmParser &parser, size_t count, SmallVectorImpl<Type> &types) {
  if (failed(parser.parseOptionalColon())) {
    types.assign(count, AnyType::get(parser.getContext()));
    return success();
  }
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseTypeList(types))
    return failure();
  if (types.size() != count)
    return parser.emitError(loc) << types.size() << " types for " << count << " operands";
  return success();
}

void printOperandTypes(OpAsmPrinter &p, TypeRange types) {
  if (types.empty() || llvm::any_of(types, isUnbound))
    return;
  p << " : ";
  llvm::interleaveComma(types, p);
}

ParseResult parseValueOp(OpAsmParser &parser, OperationState &state,
                         ArrayRef<StringRef> attributeNames) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc loc = parser.getCurrentLocation();
  return failure(parser.parseOperandList(operands) ||
                 parseAttributes(parser, state, attributeNames) ||
                 parser.parseOptionalAttrDict(state.attributes) ||
                 parseOperandTypes(parser, operands.size(), types) ||
                 parser.resolveOperands(operands, types, loc, state.operands));
}

void printValueOp(OpAsmPrinter &p, Operation *op) {
  p << ' ';
  p.printOperands(op->getOperands());
  printAttributes(p, op);
  p.printOptionalAttrDict(op->getDiscardableAttrDictionary().getValue());
  printOperandTypes(p, op->getOperandTypes());
}

ParseResult parseLeafOp(OpAsmParser &parser, OperationState &state,
                        ArrayRef<StringRef> attributeNames) {
  SmallVector<Type> types;
  if (parseAttributes(parser, state, attributeNames) || parseOperandTypes(parser, 1, types))
    return failure();
  state.addTypes(types);
  return success();
}

void printLeafOp(OpAsmPrinter &p, Operation *op) {
  printAttributes(p, op);
  printOperandTypes(p, op->getResultTypes());
}

//===-- The common verifier -----------------------------------------------------------------===//

/// A bound operation without operands has the type that its attributes say.
static LogicalResult verifySource(Operation *op) {
  auto leaf = dyn_cast<LeafOpInterface>(op);
  if (!leaf || isa<UseOp>(op)) // the model verifies uses
    return success();
  FailureOr<RankedTensorType> type = boundTypeOf(leaf);
  if (failed(type))
    return failure();
  if (op->getResult(0).getType() == *type)
    return success();
  return op->emitOpError() << "has type " << op->getResult(0).getType()
                           << " but its attributes say " << *type;
}

/// Ids are i32, which must be able to name every row of a table and every class.
static LogicalResult verifyIds(Operation *op) {
  auto user = dyn_cast<IdOpInterface>(op);
  constexpr int64_t kMostIds = int64_t{1} << 31;
  for (unsigned i = 0; user && i < op->getNumOperands(); ++i)
    if (std::optional<IdRange> range = user.idRange(i); range && range->limit > kMostIds)
      return op->emitOpError() << "has " << range->limit << " rows or classes; ids of i32 name "
                               << kMostIds << " at most";
  return success();
}

/// Attributes of a bound operation are expressions, over the number of the layer, only in layers
/// that are not unrolled yet, and in bodies of their scans.
static LogicalResult verifyNumbers(Operation *op) {
  if (op->getNumOperands() == 0 &&
      op->getNumResults() == 0) // whose types would say that it is bound
    return success();
  for (NamedAttribute a : op->getAttrs()) {
    if (!hasExpr(a.getValue()))
      continue;
    auto model = op->getParentOfType<ModelOp>();
    auto entry = op->getParentOfType<EntryOp>();
    const bool hasLayers = model && !model.getBody().getOps<StackOp>().empty();
    if (!hasLayers || !(op->getParentOfType<ForOp>() || (entry && !entry.isProgram())))
      return op->emitOpError() << "attribute '" << a.getName().getValue()
                               << "' is an expression in a bound operation";
  }
  return success();
}

LogicalResult verifyValueOp(Operation *op) {
  for (NamedAttribute a : op->getDiscardableAttrs())
    if (!a.getName().strref().contains('.'))
      return op->emitOpError("has no attribute '") << a.getName().strref() << "'";
  bool unbound = llvm::any_of(op->getOperandTypes(), isUnbound) ||
                 llvm::any_of(op->getResultTypes(), isUnbound);
  if (!unbound)
    return success(succeeded(verifyNumbers(op)) && succeeded(verifySource(op)) &&
                   succeeded(verifyIds(op)));
  bool bound = llvm::any_of(op->getOperandTypes(), [](Type t) { return !isUnbound(t); }) ||
               llvm::any_of(op->getResultTypes(), [](Type t) { return !isUnbound(t); });
  if (bound)
    return op->emitOpError("mixes bound and unbound values");
  return success();
}

//===-- Type inference ----------------------------------------------------------------------===//

bool TypeInference::anyUnbound() const { return llvm::any_of(operands.getTypes(), isUnbound); }

/// Environment of the first layer.
static Environment firstLayer(MLIRContext *context) {
  Environment environment;
  environment.values[kLayerSymbol] = Builder(context).getI64IntegerAttr(0);
  return environment;
}

FailureOr<Attribute> TypeInference::inFirstLayer(Attribute properties) const {
  auto given = dyn_cast_or_null<DictionaryAttr>(properties);
  if (!given || llvm::none_of(given, [](NamedAttribute a) { return hasExpr(a.getValue()); }))
    return properties;
  NamedAttrList values(given);
  for (NamedAttribute a : given) {
    if (!hasExpr(a.getValue()))
      continue;
    FailureOr<Attribute> value = hydra::evaluate(a.getValue(), firstLayer(context), [&] {
      return location ? mlir::emitError(*location) << "'" << opName << "' op "
                      : InFlightDiagnostic();
    });
    if (failed(value))
      return failure();
    values.set(a.getName(), *value);
  }
  return Attribute(values.getDictionary(context));
}

FailureOr<RankedTensorType> boundTypeOf(LeafOpInterface leaf) {
  if (llvm::none_of(leaf->getAttrs(), [](NamedAttribute a) { return hasExpr(a.getValue()); }))
    return leaf.boundType();
  OwningOpRef<Operation *> first(leaf->clone());
  const Environment environment = firstLayer(leaf->getContext());
  for (NamedAttribute a : leaf->getAttrs())
    if (hasExpr(a.getValue())) {
      FailureOr<Attribute> value =
          evaluate(a.getValue(), environment, [&] { return leaf->emitOpError(); });
      if (failed(value))
        return failure();
      (*first)->setAttr(a.getName(), *value);
    }
  return cast<LeafOpInterface>(*first).boundType();
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// What is wrong with a type for a value of any size.
static std::string checkKind(Type type, bool eightBit) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding())
    return typeText(type) + " is not a static tensor";
  Type element = tensor.getElementType();
  if (!isModelElement(element) && !element.isInteger(1) &&
      !(eightBit && (isEightBitFloat(element) || isInt8(element) || isMasterRest(element))))
    return "elements of " + typeText(element) + "; expected f32, bf16, f16, i32 or i1";
  return checkPositive(tensor.getShape());
}

LogicalResult TypeInference::checkOperands(unsigned least, bool eightBit) const {
  if (operands.size() < least)
    return fail("has " + Twine(operands.size()) + " operands; expected at least " + Twine(least));
  for (auto [i, type] : llvm::enumerate(operands.getTypes()))
    if (std::string problem = checkKind(type, eightBit); !problem.empty())
      return fail("operand " + Twine(i) + ": " + problem);
  return success();
}

LogicalResult TypeInference::fail(const Twine &message) const {
  return emitOptionalError(location, opName, ": ", message);
}

std::string checkTensorType(Type type) {
  std::string problem = checkKind(type, /*eightBit=*/true);
  return problem.empty() ? checkShape(cast<RankedTensorType>(type).getShape()) : problem;
}

LogicalResult checkTensors(std::optional<Location> location, StringRef opName, StringRef what,
                           TypeRange types) {
  for (auto [i, type] : llvm::enumerate(types))
    if (std::string problem = isUnbound(type) ? "" : checkTensorType(type); !problem.empty())
      return emitOptionalError(location, opName, ": ", what, " ", i, ": ", problem);
  return success();
}

LogicalResult TypeInference::wantPositive(ArrayRef<int64_t> shape) const {
  std::string problem = checkPositive(shape);
  return problem.empty() ? success() : fail(problem);
}

LogicalResult TypeInference::pushMatmul(ArrayRef<int64_t> shape, Type element, TypeAttr dtype,
                                        TypeAttr compute, SmallVectorImpl<Type> &types) const {
  if (dtype && dtype.getValue() != element && !(dtype.getValue().isF32() && isNarrowFloat(element)))
    return fail("cannot yield this element type; expected f32, or that of the operands");
  if (compute && !canMultiplyIn(element, compute.getValue()))
    return fail("cannot multiply in this format; expected f32 or tf32, of operands in f32");
  types.push_back(tensor(shape, dtype ? dtype.getValue() : element));
  return success();
}

LogicalResult TypeInference::wantPossible(ArrayRef<int64_t> shape, StringRef what) const {
  std::string problem = checkShape(shape);
  return problem.empty() ? success() : fail(what + " " + problem);
}

LogicalResult TypeInference::wantFinite(double value, StringRef what, double least) const {
  if (value >= least && std::isfinite(static_cast<float>(value)))
    return success();
  return fail(what + " is " + numberText(value) + "; expected a finite number from " +
              numberText(least));
}

LogicalResult TypeInference::wantPositive(double value, StringRef what) const {
  if (value > 0.0 && std::isfinite(static_cast<float>(value)))
    return success();
  return fail(what + " is " + numberText(value) + "; expected a positive number");
}

LogicalResult TypeInference::wantScores(double scale, Attribute cap) const {
  if (failed(wantPositive(scale, "scale")))
    return failure();
  if (!cap)
    return success();
  const double rounded = static_cast<float>(realValue(cap));
  if (failed(wantPositive(rounded, "cap")))
    return failure();
  return wantPositive(scale / rounded, "scale / cap");
}

LogicalResult TypeInference::wantFloat(Value v, StringRef what) const {
  if (isa<FloatType>(element(v)))
    return success();
  return fail(what + " has elements of " + typeText(element(v)) +
              "; expected a floating-point type");
}

LogicalResult TypeInference::wantInteger(Value v, StringRef what) const {
  if (element(v).isInteger(32))
    return success();
  return fail(what + " has elements of " + typeText(element(v)) + "; expected i32");
}

LogicalResult TypeInference::wantWeight(Value v, StringRef what) const {
  if (isInt8(element(v)) || isMasterRest(element(v)) ||
      (isa<FloatType>(element(v)) && !isEightBitFloat(element(v))))
    return success();
  return fail(what + " has elements of " + typeText(element(v)) +
              "; expected f32, bf16, f16 or i8");
}

LogicalResult TypeInference::wantRank(Value v, StringRef what, int64_t rank) const {
  if (type(v).getRank() == rank)
    return success();
  return fail(what + " is " + shapeText(shape(v)) + "; expected " + Twine(rank) + " dimensions");
}

LogicalResult TypeInference::wantShape(Value v, StringRef what, ArrayRef<int64_t> want) const {
  if (shape(v) == want)
    return success();
  return fail(what + " is " + shapeText(shape(v)) + "; expected " + shapeText(want));
}

LogicalResult TypeInference::wantExact(Value v, StringRef what, ArrayRef<int64_t> want) const {
  if (failed(wantShape(v, what, want)))
    return failure();
  if (element(v).isF32())
    return success();
  return fail(what + " has elements of " + typeText(element(v)) + "; expected f32");
}

LogicalResult TypeInference::wantSameType(Value a, StringRef aName, Value b,
                                          StringRef bName) const {
  if (a.getType() == b.getType())
    return success();
  return fail(aName + " is " + typeText(a.getType()) + " but " + bName + " is " +
              typeText(b.getType()));
}

LogicalResult TypeInference::wantAxis(int64_t &axis, int64_t rank) const {
  int64_t given = axis;
  if (axis < 0)
    axis += rank;
  if (axis >= 0 && axis < rank)
    return success();
  return fail("axis " + Twine(given) + " of a tensor with " + Twine(rank) + " dimensions");
}

} // namespace hydra
