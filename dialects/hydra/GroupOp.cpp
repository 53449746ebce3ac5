// hydra.group: an optimizer and its settings, as the optimizer's operation knows them.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/SymbolLists.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hydra {

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

} // namespace hydra
