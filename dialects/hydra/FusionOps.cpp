// Groups of row-wise operations.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowForms.h"

using namespace mlir;

namespace hydra {

RowDomain FusedOp::getDomain() { return {getRows(), getInner()}; }

YieldOp FusedOp::getYield() { return cast<YieldOp>(getBlock().getTerminator()); }

void FusedOp::build(OpBuilder &b, OperationState &state, const RowDomain &domain, ValueRange inputs,
                    TypeRange results) {
  build(b, state, results, inputs, b.getI64ArrayAttr(domain.rowShape),
        b.getI64ArrayAttr(domain.innerShape));
  Block &block = state.regions.front()->emplaceBlock();
  for (Value input : inputs)
    block.addArgument(input.getType(), input.getLoc());
}

RowUse FusedOp::rowUse(unsigned operand) {
  if (getRows().empty())
    return RowUse::All;
  for (unsigned i = 0; i < getNumResults(); ++i) {
    RowForm form = getResultForm(i);
    if (sumsOverRows(i) || (form != RowForm::Tile && form != RowForm::Row))
      return RowUse::All;
  }
  if (isOuterOnly(operand))
    return llvm::all_of(getBlock().getArgument(operand).getUsers(),
                        [](Operation *user) { return isa<TakeRowsOp>(user); })
               ? RowUse::Named
               : RowUse::All;
  RowForm form = getInputForm(operand);
  return form == RowForm::Tile || form == RowForm::Row ? RowUse::Each : RowUse::All;
}

//===-- Text --------------------------------------------------------------------------------===//

ParseResult FusedOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SmallVector<Type> types;
  if (parseAttributes(parser, state, getAttributeNames()))
    return failure();
  for (StringRef name : {"rows", "inner"})
    if (!state.attributes.get(name))
      return parser.emitError(parser.getNameLoc()) << "needs the attribute '" << name << "'";
  SMLoc loc = parser.getCurrentLocation();
  auto input = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(inputs.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalParen, input) ||
      parseOperandTypes(parser, inputs.size(), types))
    return failure();
  if (llvm::any_of(types, isUnbound))
    return parser.emitError(loc) << "inputs have no types; a group exists only once bound";
  if (parser.resolveOperands(inputs, types, loc, state.operands))
    return failure();
  for (auto [argument, type] : llvm::zip(arguments, types))
    argument.type = type;
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes)) // what passes have marked
    return failure();
  Region *body = state.addRegion();
  if (parseBody(parser, *body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), state.location);
  if (!body->hasOneBlock())
    return parser.emitError(loc) << "a group has one block";
  state.addTypes(body->front().getTerminator()->getOperandTypes());
  return success();
}

void FusedOp::print(OpAsmPrinter &p) {
  p << " rows = ";
  printExprList(p, getRowsAttr());
  p << " inner = ";
  printExprList(p, getInnerAttr());
  if (!getInputs().empty()) {
    p << " (";
    for (auto [i, input] : llvm::enumerate(getInputs()))
      p << (i ? ", " : "") << getBlock().getArgument(i) << " = " << input;
    p << ')';
  }
  printOperandTypes(p, getInputs().getTypes());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), getAttributeNames());
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

/// Whether a value in a group is a sum over rows, perhaps reshaped.
static bool isSumOverRows(Value v) {
  while (auto reshape = v.getDefiningOp<ReshapeOp>())
    v = reshape.getX();
  auto op = dyn_cast_or_null<RowWiseOpInterface>(v.getDefiningOp());
  return op && op.sumsOverRows(cast<OpResult>(v).getResultNumber());
}

//===-- Verification ------------------------------------------------------------------------===//

namespace {

/// Finds the form of every value of a group; reports what does not fit.
class FormAnalysis {
public:
  explicit FormAnalysis(FusedOp group) : group(group), domain(group.getDomain()) {}

  LogicalResult run() {
    for (auto [i, argument] : llvm::enumerate(group.getBlock().getArguments()))
      if (!group.isOuterOnly(i)) {
        forms[argument] = formOfShape(domain, build::shapeOf(argument));
        if (!forms[argument])
          return group.emitOpError()
                 << "input " << i << " is " << shapeText(build::shapeOf(argument)) << "; expected "
                 << expectedShapes();
      }
    for (Operation &op : group.getBlock().without_terminator())
      if (failed(visit(&op)))
        return failure();
    return checkResults();
  }

private:
  /// nullopt: the value is the same everywhere, so any form will do.
  using Form = std::optional<RowForm>;

  std::string domainText() const {
    return "rows " + shapeText(domain.rowShape) + " and inner " + shapeText(domain.innerShape);
  }

  std::string expectedShapes() const {
    std::string text;
    for (RowForm form : {RowForm::Tile, RowForm::Row, RowForm::Column, RowForm::Scalar})
      text += (text.empty()              ? ""
               : form == RowForm::Scalar ? " or "
                                         : ", ") +
              shapeText(shapeOfForm(domain, form)) + " (" + formName(form).str() + ")";
    return text;
  }

  bool agree(Form a, RowForm b) const { return !a || sameForm(domain, *a, b); }

  LogicalResult visit(Operation *op) {
    for (Value operand : op->getOperands())
      if (!isa<ReshapeOp>(op) && isSumOverRows(operand))
        return op->emitOpError("uses a sum over rows of its own group");
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      Form form = forms.lookup(reshape.getX());
      if (form && !fitsForm(domain, *form, build::shapeOf(reshape.getY())))
        return op->emitOpError("mixes rows and columns of its group, which has ") << domainText();
      forms[reshape.getY()] = form;
      return success();
    }
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      return visitBroadcast(broadcast);
    if (auto rowWise = dyn_cast<RowWiseOpInterface>(op); rowWise && rowWise.isRowWise())
      return visitRowWise(rowWise);
    return op->emitOpError("cannot be in a group; expected row-wise operations, reshapes and "
                           "broadcasts");
  }

  LogicalResult visitBroadcast(BroadcastOp op) {
    Form from = forms.lookup(op.getX());
    if (!from || sameForm(domain, *from, RowForm::Scalar)) { // the same number everywhere
      forms[op.getY()] = std::nullopt;
      return success();
    }
    for (RowForm to : {RowForm::Tile, RowForm::Row, RowForm::Column, RowForm::Scalar}) {
      std::optional<RowForm> source =
          formBeforeBroadcast(domain, to, build::shapeOf(op.getX()), build::shapeOf(op.getY()));
      if (!source || !agree(from, *source))
        continue;
      forms[op.getY()] = to;
      return success();
    }
    return op.emitOpError() << "does not repeat a " << formName(*from) << " over all rows or all "
                            << "columns of its group, which has " << domainText();
  }

  LogicalResult visitRowWise(RowWiseOpInterface op) {
    if (isa<ConstantOp>(op)) {
      forms[op->getResult(0)] = std::nullopt;
      return success();
    }
    if (op->getNumOperands() == 0) { // a source lies as its shape says
      Value result = op->getResult(0);
      forms[result] = formOfShape(domain, build::shapeOf(result));
      if (forms[result])
        return success();
      return op.emitOpError() << "is " << shapeText(build::shapeOf(result)) << "; expected "
                              << expectedShapes();
    }
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (op.needsOuterOperand(i) && !isa<BlockArgument>(operand))
        return op.emitOpError() << "needs operand " << i << " from outside the group";
    SmallVector<RowForm, 4> fitting = fittingForms(domain, op);
    if (fitting.empty())
      return op.emitOpError() << "works on " << shapeText(op.rowWiseShape())
                              << ", which is not the domain of its group: " << domainText();
    for (RowForm form : fitting) {
      bool fits = llvm::all_of(llvm::enumerate(op->getOperands()), [&](auto operand) {
        return op.needsOuterOperand(operand.index()) ||
               agree(forms.lookup(operand.value()),
                     formWithin(form, op.operandForm(operand.index())));
      });
      if (!fits)
        continue;
      for (auto [i, result] : llvm::enumerate(op->getResults()))
        forms[result] = formWithin(form, op.resultForm(i));
      return success();
    }
    return op.emitOpError("mixes row and column values of its group, which has ") << domainText();
  }

  LogicalResult checkResults() {
    for (auto [i, value] : llvm::enumerate(group.getYield().getValues())) {
      std::optional<RowForm> want = formOfShape(domain, build::shapeOf(value));
      if (!want)
        return group.emitOpError() << "result " << i << " is " << shapeText(build::shapeOf(value))
                                   << "; expected " << expectedShapes();
      if (!agree(forms.lookup(value), *want))
        return group.emitOpError()
               << "result " << i << " of shape " << shapeText(build::shapeOf(value)) << " is a "
               << formName(*forms.lookup(value)) << "; expected a " << formName(*want);
    }
    return success();
  }

  FusedOp group;
  RowDomain domain;
  DenseMap<Value, Form> forms;
};

} // namespace

LogicalResult FusedOp::verify() {
  if (hasExpr(getRowsAttr()) || hasExpr(getInnerAttr()) ||
      llvm::any_of(getInputs().getTypes(), isUnbound))
    return emitOpError("is not bound; a group exists only once bound");
  if (llvm::any_of(getRows(), [](int64_t d) { return d < 1; }) ||
      llvm::any_of(getInner(), [](int64_t d) { return d < 1; }))
    return emitOpError() << "has rows " << shapeText(getRows()) << " and inner "
                         << shapeText(getInner()) << "; dimensions must be positive";
  SmallVector<int64_t> domain = getRows();
  llvm::append_range(domain, getInner());
  if (std::string problem = checkShape(domain); !problem.empty())
    return emitOpError() << "domain " << problem;
  if (getInner().size() > kMaxInnerDimensions)
    return emitOpError() << "has " << getInner().size() << " inner dimensions; expected at most "
                         << kMaxInnerDimensions;
  if (getInputs().getTypes() != getBlock().getArgumentTypes())
    return emitOpError("has block arguments of other types than its inputs");
  return success();
}

LogicalResult FusedOp::verifyRegions() {
  if (getYield().getValues().getTypes() != getResultTypes())
    return getYield().emitOpError("yields other types than the results of its group");
  for (auto [i, value] : llvm::enumerate(getYield().getValues()))
    if (isa<BlockArgument>(value))
      return emitOpError() << "result " << i << " is one of its inputs";
  return FormAnalysis(*this).run();
}

//===-- Inputs and results ------------------------------------------------------------------===//

static bool isOuterUse(OpOperand &use) {
  auto op = dyn_cast<RowWiseOpInterface>(use.getOwner());
  return op && op.needsOuterOperand(use.getOperandNumber());
}

bool FusedOp::isOuterOnly(unsigned input) {
  BlockArgument argument = getBlock().getArgument(input);
  return !argument.use_empty() && llvm::all_of(argument.getUses(), isOuterUse);
}

RowForm FusedOp::getInputForm(unsigned input) {
  return *formOfShape(getDomain(), build::shapeOf(getInputs()[input]));
}

RowForm FusedOp::getResultForm(unsigned result) {
  return *formOfShape(getDomain(), build::shapeOf(getResult(result)));
}

bool FusedOp::sumsOverRows(unsigned result) {
  return isSumOverRows(getYield().getValues()[result]);
}

static bool isInProgram(FusedOp group) {
  auto entry = group->getParentOfType<EntryOp>();
  return entry && entry.isProgram();
}

OperandLayout FusedOp::operandLayout(unsigned operand) {
  // Any strides between rows; elements of the last dimension lie densely, or are one. Kernels of
  // loops bring them to shared memory row by row, and tables are read by row: both want them
  // densely.
  const bool isTable = isOuterOnly(operand);
  const bool rowValue = !isTable && getInputForm(operand) == RowForm::Row;
  return {/*denseInner=*/rowValue ? 0u : 1u, /*mergedRows=*/false, /*apartRows=*/false,
          /*alignment=*/4, /*repeatedInner=*/!isTable && isInProgram(*this)};
}

OperandLayout FusedOp::resultLayout(unsigned result) {
  const RowForm form = getResultForm(result);
  const bool rowValue = form == RowForm::Row && isInProgram(*this);
  if (sumsOverRows(result) || (form != RowForm::Tile && !rowValue))
    return {};
  return {/*denseInner=*/rowValue ? 0u : 1u, /*mergedRows=*/false, /*apartRows=*/false,
          /*alignment=*/4};
}

/// Whether a use from outside reads, for an element, others than the one in its place or the pair
/// that it belongs to.
static bool readsFarElements(OpOperand &use) {
  auto storage = dyn_cast<StorageOpInterface>(use.getOwner());
  return isOuterUse(use) &&
         (!storage || !llvm::is_contained(storage.overwritableOperands(0), use.getOperandNumber()));
}

/// Whether kernels read pairs of neighbours before they store either: chunks of rows have them
/// whole, unless something in the group needs chunks of single elements.
static bool keepsPairs(FusedOp group) {
  return isInProgram(group) && llvm::none_of(group.getBlock().getArguments(), [](Value argument) {
           return llvm::any_of(argument.getUses(), readsFarElements);
         });
}

SmallVector<unsigned> FusedOp::overwritableOperands(unsigned result) {
  SmallVector<unsigned> numbers;
  if (getResultForm(result) != RowForm::Tile || sumsOverRows(result))
    return numbers;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    // The same value may come in twice, once from outside.
    bool isOuter = llvm::any_of(llvm::enumerate(getInputs()), [&](auto other) {
      return other.value() == input &&
             llvm::any_of(getBlock().getArgument(other.index()).getUses(), isOuterUse);
    });
    if ((!isOuter || keepsPairs(*this)) && input.getType() == getResult(result).getType())
      numbers.push_back(i);
  }
  return numbers;
}

//===-- Cost --------------------------------------------------------------------------------===//

/// Operations of one execution of an inner operation; sources are free.
static int64_t flopsOf(Operation &op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost && op.getNumOperands() > 0 ? cost.flops() : 0;
}

int64_t FusedOp::flops() {
  int64_t n = 0;
  for (Operation &op : getBlock().without_terminator())
    n += flopsOf(op);
  return n;
}

int64_t FusedOp::bytes() {
  int64_t n = operandAndResultBytes(*this);
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    if (!isOuterOnly(i))
      continue;
    // Of a table only the gathered rows are read, each as wide as the row of the result.
    RankedTensorType type = build::typeOf(input);
    int64_t gathered = getDomain().rows() * getDomain().columns();
    int64_t unread = std::max<int64_t>(type.getNumElements() - gathered, 0);
    n -= unread * type.getElementTypeBitWidth() / 8;
  }
  return n;
}

OpClass FusedOp::costClass() {
  OpClass largest = OpClass::elementwise;
  int64_t most = -1;
  for (Operation &op : getBlock().without_terminator()) {
    if (op.getNumOperands() == 0 || isa<ReshapeOp, BroadcastOp>(op) || flopsOf(op) <= most)
      continue;
    most = flopsOf(op);
    largest = cast<CostOpInterface>(op).costClass();
  }
  return largest;
}

//===-- Emission ----------------------------------------------------------------------------===//

SmallVector<RowValue> FusedOp::emit(RowEmitter &emitter, ArrayRef<RowValue> inputs) {
  DenseMap<Value, RowValue> values;
  for (auto [argument, input] : llvm::zip(getBlock().getArguments(), inputs))
    values[argument] = input;
  for (Operation &op : getBlock().without_terminator()) {
    if (isa<ReshapeOp, BroadcastOp>(op)) {
      // Another shape of the same numbers, or their repetition: the emitter promotes forms.
      RowValue same = values.lookup(op.getOperand(0));
      values[op.getResult(0)] = same;
      continue;
    }
    auto rowWise = cast<RowWiseOpInterface>(op);
    SmallVector<RowValue> operands, results(op.getNumResults());
    SmallVector<unsigned> outer;
    for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
      auto argument = dyn_cast<BlockArgument>(operand);
      operands.push_back(values.lookup(operand));
      outer.push_back(argument ? argument.getArgNumber() : ~0u);
    }
    rowWise.emitRows(emitter, operands, outer, results);
    for (auto [i, result] : llvm::enumerate(op.getResults())) {
      Type element = build::typeOf(result).getElementType();
      bool rounded = rowWise.sumsOverRows(i) || element.isInteger(1) ||
                     emitter.elementType(results[i]) == element;
      values[result] = rounded ? results[i] : emitter.cast(results[i], element);
    }
  }
  return llvm::map_to_vector(getYield().getValues(), [&](Value v) { return values.lookup(v); });
}

} // namespace hydra
