// Which programs a bound model has, what each of them sets for itself, and what those that measure return beside a loss.
#include "passes/bind/Programs.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/OutputNames.h"
#include "dialects/hydra/RowLoss.h"

using namespace mlir;

namespace hydra {

LogicalResult Programs::select(ModelOp model, ArrayRef<std::string> programs) {
  if (programs.empty())
    return success();
  SmallVector<EntryOp> originals(model.getBody().getOps<EntryOp>());
  struct Chosen {
    StringRef name;
    EntryOp entry;
    ProgramRoleAttr role;
  };
  SmallVector<Chosen> chosen;
  StringSet<> names;
  for (StringRef text : programs) {
    auto [label, target] = text.split(':');
    auto [name, roleName] = label.split('@');
    ProgramRoleAttr role;
    if (!roleName.empty()) {
      std::optional<ProgramRole> known = symbolizeProgramRole(roleName);
      if (!known || *known < ProgramRole::eval)
        return model.emitOpError() << "program '" << name << "' has the role '" << roleName
                                   << "'; expected eval, generate or decode";
      role = ProgramRoleAttr::get(model.getContext(), *known);
    }
    auto [entryName, dims] = target.split(':');
    if (name.empty() || entryName.empty())
      return model.emitOpError() << "cannot read the program '" << text
                                 << "'; expected NAME[@ROLE]:ENTRY[:DIM=VALUE]...";
    auto entry = model.lookupSymbol<EntryOp>(entryName);
    if (!entry)
      return model.emitOpError() << "@" << model.getSymName() << " has no entry '" << entryName
                                 << "' for the program '" << name << "'";
    if (!names.insert(name).second)
      return model.emitOpError() << "program '" << name << "' is given twice";
    chosen.push_back({name, entry, role});
    while (!dims.empty()) {
      StringRef dim;
      std::tie(dim, dims) = dims.split(':');
      if (failed(readSetting(model, name, entry, dim)))
        return failure();
    }
  }
  OpBuilder b = OpBuilder::atBlockEnd(&model.getBody().front());
  for (const Chosen &program : chosen) {
    if (!isa_and_nonnull<EntryOp>(model.lookupSymbol(program.name)) &&
        failed(checkProgramName(model, program.name)))
      return failure(); // entries go
    auto entry = cast<EntryOp>(b.clone(*program.entry));
    entry.setSymName(program.name);
    if (program.role)
      entry.setRoleAttr(program.role);
  }
  for (EntryOp entry : originals)
    entry.erase();
  return success();
}

/// A dimension that one program gives another value: `B=1`; or a choice or flag of its own:
/// `mod=dense`, `blend=true`.
LogicalResult Programs::readSetting(ModelOp model, StringRef program, EntryOp entry,
                                    StringRef setting) {
  auto [dim, text] = setting.split('=');
  if (const Settings::Symbol *symbol = settings.lookup(dim);
      symbol && (symbol->kind == SymbolKind::choice || symbol->kind == SymbolKind::flag)) {
    for (DeriveOp derived : model.getBody().getOps<DeriveOp>()) {
      bool reads = false;
      forEachSymbol(derived.getValue(), [&](StringRef name) { reads |= name == dim; });
      if (reads)
        return model.emitOpError() << "program '" << program << "' sets '" << dim << "', on which '"
                                   << derived.getSymbol() << "' depends, which all programs share";
    }
    Attribute value = parseLiteral(model.getContext(), text);
    std::string want = value ? checkSymbolValue(value, symbol->kind, symbol->options) : "a value";
    if (!want.empty())
      return model.emitOpError() << "program '" << program << "' chooses " << dim << " = '" << text
                                 << "'; expected " << want;
    choicesOf[program][dim] = value;
    return success();
  }
  if (!llvm::is_contained(entry.getDims().getAsValueRange<StringAttr>(), dim))
    return model.emitOpError() << "program '" << program << "' sets '" << dim << "', but @"
                               << entry.getSymName() << " has no such dimension";
  Attribute value = parseLiteral(model.getContext(), text);
  if (failed(settings.checkEntryDim(dim, value, text)))
    return failure();
  dimsOf[program][dim] = value;
  return success();
}

LogicalResult Programs::returnLabels(EntryOp entry) {
  ReturnOp end = entry.getReturn();
  if (entry.getRole() != ProgramRole::eval || !end.getOutput(kLossOutput))
    return success();
  if (end.getOutput(kLossLabelsOutput))
    return end.emitOpError() << "has an output '" << kLossLabelsOutput
                             << "', which programs that measure add";
  SmallVector<Value> labels;
  for (auto loss : entry.getBody().getOps<CountedLossOpInterface>())
    if (!loss.getCount() && llvm::none_of(labels, [&](Value other) {
          return build::behindReshapes(other) == build::behindReshapes(loss.getLabels());
        }))
      labels.push_back(loss.getLabels());
  if (llvm::all_of(labels, [](Value v) { return isa<BlockArgument>(build::behindReshapes(v)); }))
    return success();
  OpBuilder b(end);
  Location loc = end.getLoc();
  Value all;
  for (Value set : labels) {
    Value flat = build::reshape(b, loc, set, {build::typeOf(set).getNumElements()});
    Value count = RowLoss::countOf(b, loc, flat);
    all = all ? AddOp::create(b, loc, all, count).getResult() : count;
  }
  SmallVector<Value> values(end.getOutputs());
  values.push_back(all);
  llvm::append_range(values, end.getUpdates());
  SmallVector<Attribute> names(end.getOutputNames().getValue());
  names.push_back(b.getStringAttr(kLossLabelsOutput));
  end.getValuesMutable().assign(values);
  end.setOutputNamesAttr(b.getArrayAttr(names));
  return success();
}

Attribute Programs::dim(StringRef program, StringRef name) const {
  auto own = dimsOf.find(program);
  Attribute value = own == dimsOf.end() ? Attribute() : own->second.lookup(name);
  return value ? value : settings.entryDim(name);
}

llvm::StringMap<Attribute> Programs::choices(StringRef program) const {
  return choicesOf.lookup(program);
}

} // namespace hydra
