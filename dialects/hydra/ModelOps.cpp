// Text, verification and lookups of the operations that make up a model file.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/SymbolLists.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;

namespace hydra {

//===-- model -------------------------------------------------------------------------------===//

Attribute ModelOp::getSymbolValue(StringRef name) {
  auto symbols = getBoundAttr() ? getBoundAttr().getAs<DictionaryAttr>("symbols") : DictionaryAttr();
  return symbols ? symbols.get(name) : Attribute();
}

LogicalResult ModelOp::verify() {
  if (failed(verifyName(*this, getSymName())))
    return failure();
  for (Operation &op : getBody().front())
    if (!isa<SymbolsOp, DeriveOp, PresetOp, GroupOp, ParamOp, StateOp, StackOp, DefOp, EntryOp>(op))
      return op.emitOpError("does not belong directly into a model");
  return success();
}

namespace {

/// Names and where they were declared, to report what nothing uses.
class Usage {
public:
  LogicalResult declare(StringRef name, Operation *op, StringRef what) {
    auto [it, fresh] = declared.insert({name, {op, what}});
    if (fresh)
      return success();
    return op->emitOpError() << what << " '" << name << "' is declared twice";
  }
  void use(Attribute expr) {
    forEachSymbol(expr, [&](StringRef name) { used.insert(name); });
  }
  bool knows(StringRef name) const { return declared.count(name); }

  LogicalResult verify() const {
    for (auto &[name, where] : declared)
      if (!used.contains(name))
        return where.first->emitOpError() << where.second << " '" << name << "' is never used";
    return success();
  }

private:
  llvm::MapVector<StringRef, std::pair<Operation *, StringRef>> declared;
  llvm::StringSet<> used;
};

} // namespace

/// What a use can mean: one variable, or, in a definition that loops over any stack may call,
/// several.
static SmallVector<Operation *> meanings(ModelOp model, UseOp use) {
  SmallVector<Operation *> variables;
  if (Operation *variable = use.lookup())
    variables.push_back(variable);
  if (use->getParentOfType<DefOp>())
    for (StackOp stack : model.getBody().getOps<StackOp>())
      if (Operation *variable = stack.lookupSymbol(use.getVariableAttr()))
        variables.push_back(variable);
  return variables;
}

/// The values of presets must fit the symbols.
static LogicalResult verifyPresets(ModelOp model) {
  struct Symbol {
    StringRef kind;
    ArrayAttr options;
  };
  llvm::StringMap<Symbol> symbols;
  for (SymbolsOp op : model.getBody().getOps<SymbolsOp>())
    for (auto [name, kind, options] : llvm::zip(op.getNames(), op.getKinds(), op.getOptions()))
      symbols[cast<StringAttr>(name)] = {cast<StringAttr>(kind), cast<ArrayAttr>(options)};
  StringSet<> presets;
  for (PresetOp preset : model.getBody().getOps<PresetOp>()) {
    if (!presets.insert(preset.getPreset()).second)
      return preset.emitOpError() << "preset @" << preset.getPreset() << " is declared twice";
    for (NamedAttribute a : preset.getValues()) {
      StringRef name = a.getName().strref();
      auto symbol = symbols.find(name);
      if (symbol == symbols.end())
        return preset.emitOpError() << "symbol '" << name << "' of preset @" << preset.getPreset()
                                    << " is not declared";
      std::string want =
          checkSymbolValue(a.getValue(), symbol->second.kind, symbol->second.options);
      if (!want.empty())
        return preset.emitOpError() << "@" << preset.getPreset() << " gives '" << name
                                    << "' a value that is not " << want;
    }
  }
  return success();
}

/// What a bound operation must no longer have: free symbols, conditions outside of loops.
static LogicalResult verifyBoundAttributes(Operation *op) {
  if (isa<SymbolsOp, DeriveOp, PresetOp, DefOp, CallOp, LetOp, BundleOp, FieldOp, PrefixScanOp,
          ScanOp>(op))
    return op->emitOpError("exists only before binding");
  auto entry = op->getParentOfType<EntryOp>(); // bodies of loops may belong to a layer
  bool inLayer = op->getParentOfType<StackOp>() || op->getParentOfType<ForOp>() ||
                 (entry && !entry.isProgram());
  for (NamedAttribute a : op->getAttrs()) {
    auto init = dyn_cast<InitAttr>(a.getValue());
    StringRef unbound;
    forEachSymbol(a.getValue(), [&](StringRef name) {
      bool later = (inLayer && name == kLayerSymbol) ||
                   (init && init.getKind() == "shuffle" && name == kIndexSymbol);
      if (!later)
        unbound = name;
    });
    if (!unbound.empty())
      return op->emitOpError() << "uses the symbol '" << unbound << "', which has no value";
  }
  if (isa<ParamOp, StateOp>(op) && hasExpr(op->getAttr("shape")))
    return op->emitOpError("has a shape that depends on the layer");
  bool conditional = isa<WhenOp>(op) || (isa<ParamOp, StateOp>(op) && op->getAttr("condition"));
  if (conditional && !inLayer)
    return op->emitOpError("has a condition that binding should have resolved");
  return success();
}

/// Before binding no value has a type, after it all have, of sizes whose sum is a number.
static LogicalResult verifyBinding(ModelOp model) {
  bool bound = model.isBound();
  constexpr int64_t kMostBytes = int64_t{1} << 62;
  int64_t bytes = 0;
  auto check = [&](Operation *op, TypeRange types) -> LogicalResult {
    for (Type type : types) {
      if (bound == isUnbound(type))
        return op->emitOpError() << "has a value of " << type << " in a model that is "
                                 << (bound ? "bound" : "not bound");
      if (std::string problem = bound ? checkTensorType(type) : ""; !problem.empty())
        return op->emitOpError() << "has a value of " << type << ": " << problem;
      if (bound && (bytes += bytesOf(type)) > kMostBytes)
        return op->emitOpError("is one of those whose values take more than 2^62 bytes");
    }
    return success();
  };
  WalkResult result = model.walk([&](Operation *op) {
    if (op == model)
      return WalkResult::advance();
    if (op->getDialect() != model->getDialect()) {
      op->emitOpError("does not belong into a model");
      return WalkResult::interrupt();
    }
    if (failed(check(op, op->getResultTypes())) || (bound && failed(verifyBoundAttributes(op))))
      return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(check(op, block.getArgumentTypes())))
          return WalkResult::interrupt();
    auto use = dyn_cast<UseOp>(op);
    if (!use || !bound)
      return WalkResult::advance();
    FailureOr<RankedTensorType> type = use.boundType();
    if (succeeded(type) && *type != use.getType())
      use.emitOpError() << "has type " << use.getType() << " but @" << use.getVariable() << " is "
                        << *type;
    return succeeded(type) && *type == use.getType() ? WalkResult::advance()
                                                     : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Parameters of definitions have names of their own, and serve what is inside.
static LogicalResult verifyParameters(ModelOp model, const Usage &symbols) {
  StringSet<> words; // dimensions of entries, and what choices can be
  for (EntryOp entry : model.getBody().getOps<EntryOp>())
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>())
      words.insert(dim);
  for (SymbolsOp op : model.getBody().getOps<SymbolsOp>())
    for (ArrayAttr options : op.getOptions().getAsRange<ArrayAttr>())
      for (StringRef option : options.getAsValueRange<StringAttr>())
        words.insert(option);
  for (DefOp definition : model.getBody().getOps<DefOp>()) {
    StringSet<> used;
    if (!definition.getParamNames().empty())
      definition.getBody().walk([&](Operation *op) {
        for (NamedAttribute a : op->getAttrs())
          forEachSymbol(a.getValue(), [&](StringRef name) { used.insert(name); });
      });
    for (StringRef name : definition.getParamNames().getAsValueRange<StringAttr>()) {
      if (symbols.knows(name) || words.contains(name))
        return definition.emitOpError() << "parameter '" << name << "' is also a word of the model";
      if (!used.contains(name))
        return definition.emitOpError() << "parameter '" << name << "' is never used";
    }
  }
  return success();
}

/// In a file with entries, every symbol and parameter must serve some configuration.
LogicalResult ModelOp::verifyRegions() {
  Block &body = getBody().front();
  Usage symbols;
  DenseSet<Operation *> usedVariables;
  DenseSet<Attribute> called;
  StringSet<> groups;
  bool hasEntries = !body.getOps<EntryOp>().empty();
  for (Operation &op : body) {
    if (auto declaration = dyn_cast<SymbolsOp>(op)) {
      for (auto [name, kind] : llvm::zip(declaration.getNames(), declaration.getKinds()))
        if (failed(symbols.declare(cast<StringAttr>(name), declaration, "symbol")))
          return failure();
    } else if (auto derive = dyn_cast<DeriveOp>(op)) {
      if (failed(symbols.declare(derive.getSymbol(), derive, "derived value")))
        return failure();
    } else if (auto group = dyn_cast<GroupOp>(op)) {
      if (!groups.insert(group.getGroup()).second)
        return group.emitOpError() << "group '" << group.getGroup() << "' is declared twice";
    }
  }
  WalkResult result = walk([&](Operation *op) {
    for (NamedAttribute a : op->getAttrs())
      if (!isa<PresetOp>(op))
        symbols.use(a.getValue());
    if (auto use = dyn_cast<UseOp>(op)) {
      SmallVector<Operation *> variables = meanings(*this, use);
      if (variables.empty()) {
        use.emitOpError() << "parameter or state @" << use.getVariable() << " is not declared";
        return WalkResult::interrupt();
      }
      usedVariables.insert(variables.begin(), variables.end());
    }
    if (auto call = dyn_cast<CallOp>(op))
      called.insert(call.getCalleeAttr().getAttr());
    StringAttr group = isa<ParamOp>(op)   ? cast<ParamOp>(op).getGroupAttr()
                       : isa<StateOp>(op) ? cast<StateOp>(op).getGroupAttr()
                                          : StringAttr();
    if (group && !groups.contains(group)) {
      op->emitOpError() << "group @" << group.getValue() << " is not declared";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (EntryOp entry : body.getOps<EntryOp>()) {
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>())
      if (symbols.knows(dim))
        return entry.emitOpError() << "dimension '" << dim << "' is also a symbol of the model";
    // Files of tensors hold what programs take beside what the model has.
    for (StringRef name : entry.getArgNames().getAsValueRange<StringAttr>())
      if (entry.isProgram() && isa_and_nonnull<ParamOp, StateOp>(lookupSymbol(name)))
        return entry.emitOpError()
               << "argument '" << name << "' has the name of a parameter or state";
  }
  if (failed(verifyPresets(*this)) || failed(verifyParameters(*this, symbols)) ||
      failed(verifyBinding(*this)))
    return failure();
  if (!hasEntries || isBound())
    return success();
  if (failed(symbols.verify()))
    return failure();
  for (DefOp definition : body.getOps<DefOp>())
    if (!called.contains(definition.getSymNameAttr()))
      return definition.emitOpError() << "definition @" << definition.getSymName()
                                      << " is never called";
  result = walk([&](ParamOp param) {
    if (usedVariables.contains(param))
      return WalkResult::advance();
    param.emitOpError() << "parameter @" << param.getSymName() << " is never used";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===-- group -------------------------------------------------------------------------------===//

const OptimizerOpInterface::Concept *GroupOp::lookupOptimizer(MLIRContext *context,
                                                              StringRef name) {
  auto op = RegisteredOperationName::lookup(
      (HydraDialect::getDialectNamespace() + "." + name).str(), context);
  return op ? op->getInterface<OptimizerOpInterface>() : nullptr;
}

/// The words that a group may begin with.
static std::string optimizerNames(MLIRContext *context) {
  SmallVector<std::string> names;
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (op.hasInterface<OptimizerOpInterface>())
      names.push_back(op.stripDialect().str());
  llvm::sort(names);
  return llvm::join(names, ", ");
}

static std::string settingNames(ArrayRef<OptimizerSetting> settings) {
  return llvm::join(llvm::map_range(settings, [](const auto &s) { return s.name.str(); }), ", ");
}

ParseResult GroupOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &b = parser.getBuilder();
  StringAttr name;
  StringRef word;
  SMLoc wordLoc;
  if (parser.parseSymbolName(name) || parser.getCurrentLocation(&wordLoc) ||
      parser.parseKeyword(&word))
    return failure();
  const auto *optimizer = lookupOptimizer(parser.getContext(), word);
  if (!optimizer)
    return parser.emitError(wordLoc)
           << "there is no optimizer '" << word
           << "'; expected one of: " << optimizerNames(parser.getContext());
  const std::string optimizerName = word.str();
  SmallVector<OptimizerSetting> settings = optimizer->settings();
  NamedAttrList given;
  auto one = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    std::string key;
    Attribute value;
    if (parseAssignment(parser, key, value, /*required=*/true))
      return failure();
    if (llvm::none_of(settings, [&](const OptimizerSetting &s) { return s.name == key; }))
      return parser.emitError(loc) << "unknown attribute '" << key << "' of " << optimizerName
                                   << "; it has: " << settingNames(settings);
    if (given.get(key))
      return parser.emitError(loc) << "attribute '" << key << "' is given twice";
    given.set(key, value);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one))
    return failure();
  SmallVector<Attribute> names, values;
  for (const OptimizerSetting &setting : settings) {
    Attribute value = given.get(setting.name);
    if (!value && !setting.standard)
      return parser.emitError(parser.getNameLoc())
             << "'hydra.group' op requires attribute '" << setting.name << "'";
    if (!value)
      value = setting.kind == OptimizerSetting::Kind::Flag
                  ? Attribute(b.getBoolAttr(*setting.standard != 0.0))
                  : b.getF64FloatAttr(*setting.standard);
    names.push_back(b.getStringAttr(setting.name));
    values.push_back(value);
  }
  state.addAttribute("group", name);
  state.addAttribute("optimizer", b.getStringAttr(optimizerName));
  state.addAttribute("names", b.getArrayAttr(names));
  state.addAttribute("values", b.getArrayAttr(values));
  return success();
}

DictionaryAttr GroupOp::getSettings() {
  NamedAttrList settings;
  for (auto [name, value] : llvm::zip(getNames().getAsRange<StringAttr>(), getValues()))
    settings.set(name, value);
  return settings.getDictionary(getContext());
}
double GroupOp::getNumber(StringRef name) { return realValue(getSettings().get(name)); }

LogicalResult GroupOp::verify() {
  if (failed(verifyName(*this, getGroup())))
    return failure();
  const auto *optimizer = lookupOptimizer(getContext(), getOptimizer());
  if (!optimizer)
    return emitOpError() << "there is no optimizer '" << getOptimizer()
                         << "'; expected one of: " << optimizerNames(getContext());
  SmallVector<OptimizerSetting> settings = optimizer->settings();
  bool complete = getNames().size() == settings.size() && getValues().size() == settings.size();
  for (unsigned i = 0; complete && i < settings.size(); ++i)
    complete = cast<StringAttr>(getNames()[i]).getValue() == settings[i].name;
  if (!complete)
    return emitOpError() << "has other settings than " << getOptimizer()
                         << "; expected: " << settingNames(settings);
  for (auto [setting, value] : llvm::zip(settings, getValues())) {
    if (setting.kind == OptimizerSetting::Kind::Number && !isRealOrExpr(value))
      return emitOpError() << "attribute '" << setting.name
                           << "' failed to satisfy constraint: number or expression";
    if (setting.kind == OptimizerSetting::Kind::Flag && !isa<BoolAttr, ExprAttr>(value))
      return emitOpError() << "attribute '" << setting.name
                           << "' failed to satisfy constraint: true, false or expression";
  }
  std::string problem = optimizer->checkSettings(getSettings());
  return problem.empty() ? success() : emitOpError() << "@" << getGroup() << ": " << problem;
}

void GroupOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getGroup());
  p << ' ' << getOptimizer() << '(';
  for (auto [i, name, value] : llvm::enumerate(getNames().getAsRange<StringAttr>(), getValues())) {
    p << (i ? ", " : "") << name.getValue() << " = ";
    printExpr(p, value);
  }
  p << ')';
}

//===-- param, state, stack -----------------------------------------------------------------===//

static Type defaultElementType(Builder &b) { return b.getF32Type(); }

static ParseResult parseVariable(OpAsmParser &parser, OperationState &state) {
  StringAttr name, group;
  ArrayAttr shape;
  InitAttr init;
  Type dtype;
  if (parser.parseSymbolName(name) || parseExprList(parser, shape))
    return failure();
  OptionalParseResult typed = parser.parseOptionalType(dtype);
  if (typed.has_value() && failed(*typed))
    return failure();
  if (!dtype)
    dtype = defaultElementType(parser.getBuilder());
  if (parser.parseKeyword("init") || parser.parseEqual() || parseInit(parser, init))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("group"))) {
    if (parser.parseEqual() || parser.parseSymbolName(group))
      return failure();
    state.addAttribute("group", group);
  }
  if (succeeded(parser.parseOptionalKeyword("when"))) {
    Attribute condition;
    if (parseExpr(parser, condition))
      return failure();
    state.addAttribute("condition", condition);
  }
  state.addAttribute("sym_name", name);
  state.addAttribute("shape", shape);
  state.addAttribute("dtype", TypeAttr::get(dtype));
  state.addAttribute("init", init);
  return success();
}

template <typename Op> static void printVariable(OpAsmPrinter &p, Op op) {
  p << ' ';
  p.printSymbolName(op.getSymName());
  p << ' ';
  printExprList(p, op.getShape());
  if (!op.getDtype().isF32())
    p << ' ' << op.getDtype();
  p << " init = ";
  printInit(p, op.getInit());
  if (op.getGroupAttr()) {
    p << " group = ";
    p.printSymbolName(*op.getGroup());
  }
  if (op.getConditionAttr()) {
    p << " when ";
    printExpr(p, op.getConditionAttr());
  }
}

template <typename Op> static LogicalResult verifyVariable(Op op) {
  if (failed(verifyName(op, op.getSymName())))
    return failure();
  if (!isa<ModelOp, StackOp>(op->getParentOp()))
    return op.emitOpError("belongs into a model or a stack");
  Type dtype = op.getDtype();
  if (!isModelElement(dtype))
    return op.emitOpError() << "has elements of " << dtype << "; expected " << kModelElements;
  if (isa<ParamOp>(op) && !isa<FloatType>(dtype))
    return op.emitOpError() << "has elements of " << dtype << "; what is trained has "
                            << kModelFloats << " (else use hydra.state)";
  SmallVector<int64_t> known;
  for (Attribute d : op.getShape()) {
    if (!isIntOrExpr(d))
      return op.emitOpError("has a dimension that is not an integer");
    if (!isa<ExprAttr>(d))
      known.push_back(intValue(d));
  }
  if (std::string problem = checkShape(known); !problem.empty())
    return op.emitOpError() << "shape " << problem;
  // A plan holds a number for each.
  constexpr int64_t kMostShuffled = 1 << 20;
  if (op.getInit().getKind() == "shuffle" && RefTensor::elements(known) > kMostShuffled)
    return op.emitOpError() << "shuffles " << RefTensor::elements(known)
                            << " numbers; expected at most " << kMostShuffled;
  return success();
}

template <typename Op> static RankedTensorType boundTypeOf(Op op) {
  return hasExpr(op.getShape()) ? RankedTensorType()
                                : RankedTensorType::get(intList(op.getShape()), op.getDtype());
}

FailureOr<std::vector<double>> shuffledValues(InitAttr init, int64_t elements,
                                              llvm::function_ref<InFlightDiagnostic()> emitError) {
  std::vector<double> values(elements);
  Environment environment;
  for (int64_t i = 0; i < elements; ++i) {
    environment.values[kIndexSymbol] = Builder(init.getContext()).getI64IntegerAttr(i);
    FailureOr<Attribute> value = evaluate(init.getArgs()[0], environment, emitError);
    if (failed(value))
      return failure();
    if (isa<ExprAttr>(*value) || !isRealOrExpr(*value) ||
        !std::isfinite(static_cast<float>(values[i] = realValue(*value))))
      return emitError() << "shuffles what is no finite number of f32 at index " << i;
  }
  return values;
}

ParseResult ParamOp::parse(OpAsmParser &p, OperationState &s) { return parseVariable(p, s); }
void ParamOp::print(OpAsmPrinter &p) { printVariable(p, *this); }
LogicalResult ParamOp::verify() { return verifyVariable(*this); }
RankedTensorType ParamOp::getBoundType() { return boundTypeOf(*this); }

ParseResult StateOp::parse(OpAsmParser &p, OperationState &s) {
  if (parseVariable(p, s))
    return failure();
  StringAttr owner;
  if (succeeded(p.parseOptionalKeyword("of"))) {
    if (p.parseSymbolName(owner))
      return failure();
    s.addAttribute("owner", owner);
  }
  if (owner ? failed(p.parseKeyword("as")) : failed(p.parseOptionalKeyword("as")))
    return failure(static_cast<bool>(owner));
  StringRef word;
  SMLoc loc = p.getCurrentLocation();
  if (p.parseKeyword(&word))
    return failure();
  std::optional<VariableRole> role = symbolizeVariableRole(word);
  if (!role)
    return p.emitError(loc) << "unknown role '" << word << "' of state";
  s.addAttribute("role", VariableRoleAttr::get(p.getContext(), *role));
  return success();
}
void StateOp::print(OpAsmPrinter &p) {
  printVariable(p, *this);
  if (getOwner()) {
    p << " of ";
    p.printSymbolName(*getOwner());
  }
  if (getRole() != VariableRole::state)
    p << " as " << stringifyVariableRole(getRole());
}

LogicalResult StateOp::verify() {
  if (failed(verifyVariable(*this)))
    return failure();
  StringRef word = stringifyVariableRole(getRole());
  Operation *owner =
      getOwner() ? SymbolTable::lookupSymbolIn((*this)->getParentOp(), *getOwner()) : nullptr;
  auto shapeOf = [](Operation *variable) { return variable->getAttrOfType<ArrayAttr>("shape"); };
  switch (getRole()) {
  case VariableRole::parameter:
    return emitOpError("is a parameter; expected hydra.param");
  case VariableRole::state:
  case VariableRole::update_count:
  case VariableRole::step_sum:
  case VariableRole::loss_scaling:
    if (getOwner())
      return emitOpError() << "belongs to @" << *getOwner() << " as " << word
                           << ", which has no owner";
    if (getRole() == VariableRole::update_count &&
        (!getShape().empty() || !getDtype().isInteger(32)))
      return emitOpError("counts updates; expected one number of i32");
    return success();
  case VariableRole::moment:
    if (!isa_and_nonnull<ParamOp>(owner))
      return emitOpError() << "is a moment of no parameter";
    return success();
  case VariableRole::gradient:
    if (!isa_and_nonnull<ParamOp>(owner) || shapeOf(owner) != getShape())
      return emitOpError() << "is a gradient of no parameter of this shape";
    return success();
  case VariableRole::copy:
    if (!isa_and_nonnull<ParamOp, StateOp>(owner) || shapeOf(owner) != getShape())
      return emitOpError() << "is a copy of no parameter or state of this shape";
    if (Type type = owner->getAttrOfType<TypeAttr>("dtype").getValue();
        type != getDtype() && !(isa<FloatType>(getDtype()) && isa<FloatType>(type)))
      return emitOpError() << "is a copy of @" << *getOwner() << " in " << getDtype()
                           << "; expected " << kModelFloats;
    return success();
  }
  llvm_unreachable("role of state");
}
RankedTensorType StateOp::getBoundType() { return boundTypeOf(*this); }
bool StateOp::isCopyOfParameter() {
  return getRole() == VariableRole::copy &&
         isa<ParamOp>(SymbolTable::lookupSymbolIn((*this)->getParentOp(), *getOwner()));
}

ParseResult StackOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  Attribute count;
  Region *body = state.addRegion();
  if (parser.parseSymbolName(name) || parser.parseLSquare() || parseExpr(parser, count) ||
      parser.parseRSquare() || parseBody(parser, *body))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  state.addAttribute("sym_name", name);
  state.addAttribute("count", count);
  return success();
}
void StackOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << '[';
  printExpr(p, getCountAttr());
  p << "] ";
  p.printRegion(getBody());
}
LogicalResult StackOp::verify() {
  if (failed(verifyName(*this, getSymName())))
    return failure();
  for (Operation &op : getBody().front())
    if (!isa<ParamOp, StateOp>(op))
      return op.emitOpError("does not belong into a stack");
  return success();
}

} // namespace hydra
