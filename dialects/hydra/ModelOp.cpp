// hydra.model: what must hold for a whole model, template or bound.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/ModelNames.h"

using namespace mlir;

namespace hydra {

Attribute ModelOp::getSymbolValue(StringRef name) {
  auto symbols =
      getBoundAttr() ? getBoundAttr().getAs<DictionaryAttr>("symbols") : DictionaryAttr();
  return symbols ? symbols.get(name) : Attribute();
}

LogicalResult ModelOp::verify() {
  if (failed(verifyName(*this, getSymName())))
    return failure();
  LogicalResult all = success();
  for (Operation &op : getBody().front())
    if (!isa<SymbolsOp, DeriveOp, PresetOp, GroupOp, ParamOp, StateOp, StackOp, DefOp, EntryOp>(op))
      all = op.emitOpError("does not belong directly into a model");
  return all;
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
    LogicalResult all = success();
    for (auto &[name, where] : declared)
      if (!used.contains(name))
        all = where.first->emitOpError() << where.second << " '" << name << "' is never used";
    return all;
  }

private:
  llvm::MapVector<StringRef, std::pair<Operation *, StringRef>> declared;
  llvm::StringSet<> used;
};

} // namespace

/// What a use can mean: one variable, or, in a definition that loops over any stack may call,
/// several.
static SmallVector<Operation *> meanings(ModelOp model, UseOp use, SymbolTableCollection &symbols) {
  SmallVector<Operation *> variables;
  if (Operation *variable = use.lookup(&symbols))
    variables.push_back(variable);
  if (use->getParentOfType<DefOp>())
    for (StackOp stack : model.getBody().getOps<StackOp>())
      if (Operation *variable = symbols.lookupSymbolIn(stack, use.getVariableAttr().getAttr()))
        variables.push_back(variable);
  return variables;
}

/// The values of presets must fit the symbols.
static LogicalResult verifyPresets(ModelOp model) {
  struct Symbol {
    SymbolKind kind;
    ArrayAttr options;
  };
  llvm::StringMap<Symbol> symbols;
  for (SymbolsOp op : model.getBody().getOps<SymbolsOp>())
    for (auto [name, kind, options] : llvm::zip(op.getNames(), op.getKinds(), op.getOptions()))
      symbols[cast<StringAttr>(name)] = {cast<SymbolKindAttr>(kind).getValue(),
                                         cast<ArrayAttr>(options)};
  StringSet<> presets;
  LogicalResult all = success();
  for (PresetOp preset : model.getBody().getOps<PresetOp>()) {
    if (!presets.insert(preset.getPreset()).second)
      all = preset.emitOpError() << "preset @" << preset.getPreset() << " is declared twice";
    for (NamedAttribute a : preset.getValues()) {
      StringRef name = a.getName().strref();
      auto symbol = symbols.find(name);
      if (symbol == symbols.end()) {
        all = preset.emitOpError()
              << "symbol '" << name << "' of preset @" << preset.getPreset() << " is not declared";
        continue;
      }
      std::string want =
          checkSymbolValue(a.getValue(), symbol->second.kind, symbol->second.options);
      if (!want.empty())
        all = preset.emitOpError() << "@" << preset.getPreset() << " gives '" << name
                                   << "' a value that is not " << want;
    }
  }
  return all;
}

/// What a bound operation must no longer have: free symbols, conditions outside of loops.
static LogicalResult verifyBoundAttributes(Operation *op) {
  if (isa<SymbolsOp, DeriveOp, PresetOp, DefOp, CallOp, LetOp, BundleOp, FieldOp, PrefixScanOp,
          ScanOp, SectionOp>(op))
    return op->emitOpError("exists only before binding");
  auto entry = op->getParentOfType<EntryOp>(); // bodies of loops may belong to a layer
  bool inLayer = op->getParentOfType<StackOp>() || op->getParentOfType<ForOp>() ||
                 (entry && !entry.isProgram());
  for (NamedAttribute a : op->getAttrs()) {
    auto init = dyn_cast<InitAttr>(a.getValue());
    StringRef unbound;
    forEachSymbol(a.getValue(), [&](StringRef name) {
      bool later = (inLayer && name == kLayerSymbol) ||
                   (init && init.getKind() == InitKind::shuffle && name == kIndexSymbol);
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
static LogicalResult verifyBinding(ModelOp model, SymbolTableCollection &tables) {
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
    FailureOr<RankedTensorType> type = use.boundType(&tables);
    if (succeeded(type) && *type != use.getType())
      use.emitOpError() << "has type " << use.getType() << " but @" << use.getVariable() << " is "
                        << *type;
    return succeeded(type) && *type == use.getType() ? WalkResult::advance()
                                                     : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Parameters of definitions have names of their own.
static LogicalResult verifyParameters(ModelOp model, const Usage &symbols) {
  StringSet<> words; // dimensions of entries, and what choices can be
  for (EntryOp entry : model.getBody().getOps<EntryOp>())
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>())
      words.insert(dim);
  for (SymbolsOp op : model.getBody().getOps<SymbolsOp>())
    for (ArrayAttr options : op.getOptions().getAsRange<ArrayAttr>())
      for (StringRef option : options.getAsValueRange<StringAttr>())
        words.insert(option);
  LogicalResult all = success();
  for (DefOp definition : model.getBody().getOps<DefOp>()) {
    StringSet<> used;
    if (!definition.getParamNames().empty())
      definition.getBody().walk([&](Operation *op) {
        for (NamedAttribute a : op->getAttrs())
          forEachSymbol(a.getValue(), [&](StringRef name) { used.insert(name); });
      });
    for (StringRef name : definition.getParamNames().getAsValueRange<StringAttr>()) {
      if (symbols.knows(name) || words.contains(name))
        all = definition.emitOpError() << "parameter '" << name << "' is also a word of the model";
      else if (!used.contains(name))
        all = definition.emitOpError() << "parameter '" << name << "' is never used";
    }
  }
  return all;
}

/// A parameter or state that is not there.
static LogicalResult refuse(ModelOp model, UseOp use, SymbolTableCollection &symbols) {
  InFlightDiagnostic error = use.emitOpError();
  error << "parameter or state @" << use.getVariable() << " is not declared";
  for (StackOp stack : model.getBody().getOps<StackOp>())
    if (symbols.lookupSymbolIn(stack, use.getVariableAttr().getAttr()))
      return error << " here; a hydra.for over @" << stack.getSymName() << " has it";
  return error;
}

/// The symbols and groups that a model declares, each once.
static LogicalResult declare(ModelOp model, Usage &symbols, StringSet<> &groups) {
  LogicalResult all = success();
  for (Operation &op : model.getBody().front()) {
    if (auto declaration = dyn_cast<SymbolsOp>(op)) {
      for (StringRef name : declaration.getNames().getAsValueRange<StringAttr>())
        if (failed(symbols.declare(name, declaration, "symbol")))
          all = failure();
    } else if (auto derive = dyn_cast<DeriveOp>(op)) {
      if (failed(symbols.declare(derive.getSymbol(), derive, "derived value")))
        all = failure();
    } else if (auto group = dyn_cast<GroupOp>(op)) {
      if (!groups.insert(group.getGroup()).second)
        all = group.emitOpError() << "group '" << group.getGroup() << "' is declared twice";
    }
  }
  return all;
}

LogicalResult verifyNames(ModelOp model) {
  Usage symbols;
  SymbolTableCollection tables;
  StringSet<> groups;
  LogicalResult all = declare(model, symbols, groups);
  model.walk([&](Operation *op) {
    if (auto use = dyn_cast<UseOp>(op); use && meanings(model, use, tables).empty())
      all = refuse(model, use, tables);
    StringAttr group = isa<ParamOp>(op)   ? cast<ParamOp>(op).getGroupAttr()
                       : isa<StateOp>(op) ? cast<StateOp>(op).getGroupAttr()
                                          : StringAttr();
    if (group && !groups.contains(group))
      all = op->emitOpError() << "group @" << group.getValue() << " is not declared";
  });
  for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>())
      if (symbols.knows(dim))
        all = entry.emitOpError() << "dimension '" << dim << "' is also a symbol of the model";
    // Files of tensors hold what programs take beside what the model has.
    for (StringRef name : entry.getArgNames().getAsValueRange<StringAttr>())
      if (entry.isProgram() && isa_and_nonnull<ParamOp, StateOp>(model.lookupSymbol(name)))
        all = entry.emitOpError() << "argument '" << name
                                  << "' has the name of a parameter or state";
  }
  for (LogicalResult part : {verifyPresets(model), verifyParameters(model, symbols)})
    if (failed(part))
      all = failure();
  return failed(all) ? all : verifyBinding(model, tables);
}

/// In a template with entries, every symbol, definition and parameter must serve some
/// configuration.
static LogicalResult verifyUsage(ModelOp model) {
  Block &body = model.getBody().front();
  Usage symbols;
  StringSet<> groups;
  SymbolTableCollection tables;
  DenseSet<Operation *> usedVariables;
  DenseSet<Attribute> called;
  if (failed(declare(model, symbols, groups)))
    return failure();
  model.walk([&](Operation *op) {
    if (!isa<PresetOp>(op))
      for (NamedAttribute a : op->getAttrs())
        symbols.use(a.getValue());
    if (auto use = dyn_cast<UseOp>(op))
      usedVariables.insert_range(meanings(model, use, tables));
    if (auto call = dyn_cast<CallOp>(op))
      called.insert(call.getCalleeAttr().getAttr());
  });
  LogicalResult all = symbols.verify();
  for (DefOp definition : body.getOps<DefOp>())
    if (!called.contains(definition.getSymNameAttr()))
      all = definition.emitOpError()
            << "definition @" << definition.getSymName() << " is never called";
  model.walk([&](ParamOp param) {
    if (!usedVariables.contains(param))
      all = param.emitOpError() << "parameter @" << param.getSymName() << " is never used";
  });
  return all;
}

LogicalResult ModelOp::verifyRegions() {
  if (failed(verifyNames(*this)))
    return failure();
  const bool hasEntries = !getBody().getOps<EntryOp>().empty();
  return hasEntries && !isBound() ? verifyUsage(*this) : success();
}

} // namespace hydra
