// The ends of entries: outputs, gradients, and new values of parameters and state.
#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

ParseResult ReturnOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &b = parser.getBuilder();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Attribute> names, updated, gradients, conditions;
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  auto output = [&]() -> ParseResult {
    StringAttr parameter;
    if (name == "grad" && succeeded(parser.parseOptionalSymbolName(parameter))) {
      gradients.push_back(FlatSymbolRefAttr::get(parameter));
      name = gradientName(parameter);
    } else if (!gradients.empty()) {
      return parser.emitError(parser.getCurrentLocation())
             << "'" << name << "' stands behind gradients, which are the last outputs";
    }
    names.push_back(b.getStringAttr(name));
    conditions.push_back(b.getUnitAttr());
    if (parser.parseEqual() || parser.parseOperand(operands.emplace_back()))
      return failure();
    return failure(succeeded(parser.parseOptionalKeyword("when")) &&
                   failed(parseExpr(parser, conditions.back())));
  };
  if (succeeded(parser.parseOptionalKeywordOrString(&name)) && name != "updates") {
    do {
      if (output())
        return failure();
    } while (succeeded(parser.parseOptionalComma()) &&
             succeeded(parser.parseKeywordOrString(&name)));
    name.clear();
    (void)parser.parseOptionalKeywordOrString(&name);
  }
  if (name == "updates") {
    auto update = [&]() -> ParseResult {
      StringAttr symbol;
      if (parser.parseSymbolName(symbol) || parser.parseEqual() ||
          parser.parseOperand(operands.emplace_back()))
        return failure();
      updated.push_back(FlatSymbolRefAttr::get(symbol));
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, update))
      return failure();
  } else if (!name.empty()) {
    return parser.emitError(loc) << "expected 'updates', found '" << name << "'";
  }
  SmallVector<Type> types;
  if (parseOperandTypes(parser, operands.size(), types) ||
      parser.resolveOperands(operands, types, loc, state.operands))
    return failure();
  state.addAttribute("output_names", b.getArrayAttr(names));
  state.addAttribute("updated", b.getArrayAttr(updated));
  if (!gradients.empty())
    state.addAttribute("gradients", b.getArrayAttr(gradients));
  if (!llvm::all_of(conditions, llvm::IsaPred<UnitAttr>))
    state.addAttribute("conditions", b.getArrayAttr(conditions));
  return success();
}

void ReturnOp::print(OpAsmPrinter &p) {
  p << ' ';
  for (auto [i, name] : llvm::enumerate(getOutputNames().getAsValueRange<StringAttr>())) {
    p << (i ? ", " : "");
    if (FlatSymbolRefAttr parameter = gradientOf(i))
      p << "grad " << parameter;
    else
      p.printKeywordOrString(name);
    p << " = " << getValues()[i];
    if (getConditions() && !isa<UnitAttr>((*getConditions())[i])) {
      p << " when ";
      printExpr(p, (*getConditions())[i]);
    }
  }
  if (!getUpdated().empty()) {
    p << (getOutputNames().empty() ? "" : " ") << "updates(";
    for (auto [i, symbol] : llvm::enumerate(getUpdated())) {
      p << (i ? ", " : "") << symbol << " = " << getUpdates()[i];
    }
    p << ')';
  }
  printOperandTypes(p, getValues().getTypes());
}

LogicalResult ReturnOp::verify() {
  if (getValues().size() != getOutputNames().size() + getUpdated().size())
    return emitOpError() << "has " << getValues().size() << " values for "
                         << getOutputNames().size() + getUpdated().size() << " names";
  if (getConditions() && getConditions()->size() != getOutputNames().size())
    return emitOpError() << "has " << getOutputNames().size() << " outputs, but conditions of "
                         << getConditions()->size();
  StringSet<> names;
  for (StringRef name : getOutputNames().getAsValueRange<StringAttr>())
    if (failed(verifyName(*this, name)))
      return failure();
    else if (!names.insert(name).second)
      return emitOpError() << "output '" << name << "' is named twice";
  if (getGradients() && getGradients()->size() > getOutputNames().size())
    return emitOpError() << "has " << getOutputNames().size() << " outputs, but gradients of "
                         << getGradients()->size() << " parameters";
  return success();
}

LogicalResult ReturnOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto model = (*this)->getParentOfType<ModelOp>();
  auto find = [&](FlatSymbolRefAttr name) {
    return model ? symbols.lookupSymbolIn(model, name.getAttr()) : nullptr;
  };
  for (auto [i, name] : llvm::enumerate(getOutputNames().getAsValueRange<StringAttr>())) {
    FlatSymbolRefAttr parameter = gradientOf(i);
    if (!parameter)
      continue;
    if (!isa_and_nonnull<ParamOp>(find(parameter)))
      return emitOpError() << "returns a gradient of " << parameter << ", which is no parameter";
    if (name != gradientName(parameter.getValue()))
      return emitOpError() << "names a gradient of " << parameter << " '" << name << "'; expected '"
                           << gradientName(parameter.getValue()) << "'";
  }
  DenseSet<Attribute> targets;
  for (auto [symbol, value] :
       llvm::zip(getUpdated().getAsRange<FlatSymbolRefAttr>(), getUpdates())) {
    Operation *variable = find(symbol);
    if (!isa_and_nonnull<ParamOp, StateOp>(variable)) {
      const bool isOfStack =
          model && llvm::any_of(model.getBody().getOps<StackOp>(), [&](StackOp stack) {
            return symbols.lookupSymbolIn(stack, symbol.getAttr());
          });
      return emitOpError() << "updates " << symbol << ", which is neither parameter nor state"
                           << (isOfStack ? " of the model; those of stacks keep their values" : "");
    }
    if (!targets.insert(symbol).second)
      return emitOpError() << "updates " << symbol << " twice";
    RankedTensorType type = isa<ParamOp>(variable) ? cast<ParamOp>(variable).getBoundType()
                                                   : cast<StateOp>(variable).getBoundType();
    if (type && !isUnbound(value.getType()) && value.getType() != type)
      return emitOpError() << "gives " << symbol << " a value of " << value.getType()
                           << "; expected " << type;
  }
  return success();
}

FlatSymbolRefAttr ReturnOp::gradientOf(unsigned output) {
  const size_t count = getGradients() ? getGradients()->size() : 0,
               first = getOutputNames().size() - count;
  return output < first || output >= getOutputNames().size()
             ? FlatSymbolRefAttr()
             : cast<FlatSymbolRefAttr>((*getGradients())[output - first]);
}

Value ReturnOp::getGradient(StringAttr parameter) {
  for (unsigned i = 0; i < getOutputNames().size(); ++i)
    if (FlatSymbolRefAttr of = gradientOf(i); of && of.getAttr() == parameter)
      return getOutputs()[i];
  return {};
}

std::string ReturnOp::gradientName(StringRef parameter) { return ("grad." + parameter).str(); }

Value ReturnOp::getOutput(StringRef name) {
  for (auto [candidate, value] :
       llvm::zip(getOutputNames().getAsValueRange<StringAttr>(), getOutputs()))
    if (candidate == name)
      return value;
  return {};
}

} // namespace hydra
