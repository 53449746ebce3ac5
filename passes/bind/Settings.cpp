// Values of symbols, from defaults, a preset and settings.
#include "passes/bind/Settings.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace hydra {

static std::string listed(ArrayRef<std::string> names) {
  return names.empty() ? "none" : llvm::join(names, ", ");
}

/// A real number with its point, which tells it from an integer.
static std::string realText(double value) {
  std::string text = numberText(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

LogicalResult Settings::resolve(ModelOp of, StringRef preset, ArrayRef<std::string> settings) {
  model = of;
  return success(succeeded(declareSymbols()) && succeeded(applyPreset(preset)) &&
                 succeeded(applySettings(settings)) && succeeded(checkComplete()) &&
                 succeeded(derive()));
}

const Settings::Symbol *Settings::lookup(StringRef name) const {
  auto it = symbols.find(name);
  return it == symbols.end() ? nullptr : &it->second;
}

LogicalResult Settings::declareSymbols() {
  for (SymbolsOp op : model.getBody().getOps<SymbolsOp>())
    for (auto [name, kind, value, options] :
         llvm::zip(op.getNames(), op.getKinds(), op.getDefaults(), op.getOptions())) {
      StringRef n = cast<StringAttr>(name);
      symbols[n] = {cast<SymbolKindAttr>(kind).getValue(), cast<ArrayAttr>(options)};
      if (symbols[n].kind == SymbolKind::choice)
        for (StringRef option : cast<ArrayAttr>(options).getAsValueRange<StringAttr>())
          environment.options[n].push_back(option.str());
      if (!isa<UnitAttr>(value) && failed(give(n, value, op, "default")))
        return failure();
    }
  return success();
}

LogicalResult Settings::give(StringRef name, Attribute value, Operation *where, StringRef source) {
  auto it = symbols.find(name);
  if (it == symbols.end())
    return where->emitOpError() << source << " gives '" << name << "', but @" << model.getSymName()
                                << " has no such symbol; it has: "
                                << listed(llvm::map_to_vector(
                                       symbols, [](auto &s) { return s.first.str(); }));
  std::string want = checkSymbolValue(value, it->second.kind, it->second.options);
  if (!want.empty()) {
    InFlightDiagnostic error = where->emitOpError()
                               << source << " gives '" << name << "' the value ";
    if (auto text = dyn_cast<StringAttr>(value))
      error << text.getValue();
    else if (auto flag = dyn_cast<BoolAttr>(value))
      error << (flag.getValue() ? "true" : "false");
    else if (isa<FloatAttr>(value))
      error << realText(realValue(value));
    else if (isa<IntegerAttr>(value))
      error << numberText(realValue(value));
    else
      error << value;
    return error << "; expected " << want;
  }
  if (it->second.kind == SymbolKind::real)
    value = Builder(model.getContext()).getF64FloatAttr(realValue(value));
  environment.values[name] = value;
  return success();
}

LogicalResult Settings::applyPreset(StringRef preset) {
  if (preset.empty())
    return success();
  SmallVector<std::string> names;
  for (PresetOp op : model.getBody().getOps<PresetOp>()) {
    names.push_back(op.getPreset().str());
    if (op.getPreset() != preset)
      continue;
    for (NamedAttribute a : op.getValues())
      if (failed(give(a.getName(), a.getValue(), op, "preset")))
        return failure();
    return success();
  }
  return model.emitOpError() << "@" << model.getSymName() << " has no preset '" << preset
                             << "'; it has: " << listed(names);
}

LogicalResult Settings::applySettings(ArrayRef<std::string> settings) {
  StringSet<> dims;
  for (EntryOp entry : model.getBody().getOps<EntryOp>())
    for (StringRef dim : entry.getDims().getAsValueRange<StringAttr>())
      dims.insert(dim);
  for (StringRef setting : settings) {
    auto [name, text] = setting.split('=');
    Attribute value = parseLiteral(model.getContext(), text.trim());
    name = name.trim();
    if (name.empty() || !value)
      return model.emitOpError() << "cannot read the setting '" << setting
                                 << "'; expected NAME=VALUE with a number, true, false or a choice";
    if (!dims.contains(name)) {
      if (failed(give(name, value, model, "setting")))
        return failure();
      continue;
    }
    if (failed(checkEntryDim(name, value, text)))
      return failure();
    entryDims[name] = value;
  }
  return success();
}

LogicalResult Settings::checkEntryDim(StringRef name, Attribute value, StringRef text) const {
  auto size = dyn_cast_if_present<IntegerAttr>(value);
  if (size && !isa<BoolAttr>(value) && size.getInt() >= 1)
    return success();
  return model.emitOpError() << "setting gives '" << name << "' the value " << text
                             << "; expected a positive integer";
}

LogicalResult Settings::checkComplete() {
  for (auto &[name, symbol] : symbols)
    if (!environment.values.contains(name)) {
      SmallVector<std::string> names;
      for (PresetOp op : model.getBody().getOps<PresetOp>())
        names.push_back(op.getPreset().str());
      return model.emitOpError() << "symbol '" << name << "' of @" << model.getSymName()
                                 << " has no value; choose a preset (" << llvm::join(names, ", ")
                                 << ") or set " << name << "=VALUE";
    }
  return success();
}

LogicalResult Settings::derive() {
  llvm::StringSet<> wrong; // and what follows from it
  for (DeriveOp op : model.getBody().getOps<DeriveOp>()) {
    bool follows = false;
    forEachSymbol(op.getValue(), [&](StringRef name) { follows |= wrong.contains(name); });
    FailureOr<Attribute> value = failure();
    if (!follows)
      value = evaluate(op.getValue(), environment, [&] { return op.emitOpError(); });
    if (failed(value)) {
      if (!allErrors)
        return failure();
      wrong.insert(op.getSymbol());
      continue;
    }
    environment.values[op.getSymbol()] = *value;
    // A choice that is passed on can be all that the choices it comes from can be.
    if (isa<StringAttr>(*value))
      forEachSymbol(op.getValue(), [&](StringRef name) {
        if (auto from = environment.options.find(name); from != environment.options.end())
          llvm::append_range(environment.options[op.getSymbol()],
                             SmallVector<std::string>(from->second));
      });
  }
  return success(wrong.empty());
}

} // namespace hydra
