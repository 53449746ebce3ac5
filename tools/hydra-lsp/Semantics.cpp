// What the bound model says of the names and lines of a text.
#include "tools/hydra-lsp/Semantics.h"

#include "runtime/report/Units.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using hydra::report::bytesText;
using hydra::report::countText;

namespace hydra::lsp {

Semantics::Semantics(Analysis &analysis)
    : analysis(analysis), names(analysis.text()), uses(analysis.bound()) {
  analysis.written().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto call = dyn_cast<CallOp>(op))
      calls[call.getCalleeAttr().getAttr()].push_back(call);
    if (std::optional<Place> place = placeOf(op->getLoc()); place && !isa<YieldOp>(op))
      written.try_emplace(*place, op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (std::optional<Place> place = placeOf(argument.getLoc()))
            writtenArguments.try_emplace(*place, argument);
  });
}

Place Semantics::placeOfToken(unsigned token) const {
  return names.source().placeOf(names.allTokens()[token].begin);
}

//===-- Types -------------------------------------------------------------------------------===//

/// What a value of the text, or the field of a bundle that `path` leads to, has become. Operations
/// keep their places while they are bound; what is gone, calls, arithmetic and bundles, stands for
/// other values.
void Semantics::collect(Value value, std::vector<std::string> path, Seen &seen, Values &found) {
  if (!seen.insert({value.getAsOpaquePointer(), path}).second)
    return;
  const std::optional<Place> place = placeOf(value.getLoc());
  const size_t before = found.size();
  auto follow = [&](Block &body, unsigned number) {
    if (Operation *yield = body.getTerminator(); number < yield->getNumOperands())
      collect(yield->getOperand(number), path, seen, found);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    const unsigned number = argument.getArgNumber();
    Operation *owner = argument.getOwner()->getParentOp();
    if (place && path.empty())
      llvm::append_range(found, uses.argumentsAt(*place));
    if (auto def = dyn_cast<DefOp>(owner)) {
      for (CallOp call : calls.lookup(def.getSymNameAttr()))
        if (number < call.getArguments().size())
          collect(call.getArguments()[number], path, seen, found);
    } else if (!path.empty() && isa<ForOp, ScanOp>(owner)) {
      collect(owner->getOperand(number), path, seen, found); // what it is at first
    }
  } else {
    Operation *op = value.getDefiningOp();
    const unsigned number = cast<OpResult>(value).getResultNumber();
    if (place && path.empty())
      for (const Use &use : uses.at(*place))
        if (use.op->getName() == op->getName() && use.op->getNumResults() == op->getNumResults())
          found.push_back(use.op->getResult(number));
    if (auto let = dyn_cast<LetOp>(op)) {
      follow(let.getBody().front(), number);
    } else if (auto when = dyn_cast<WhenOp>(op)) {
      for (Region &region : when->getRegions())
        if (!region.empty() && found.size() == before)
          follow(region.front(), number);
    } else if (auto loop = dyn_cast<ForOp>(op); loop && !path.empty()) {
      follow(loop.getBody().front(), number);
    } else if (auto call = dyn_cast<CallOp>(op)) {
      if (auto callee = analysis.written().lookupSymbol<DefOp>(call.getCalleeAttr()))
        follow(callee.getBody().front(), number);
    } else if (auto field = dyn_cast<FieldOp>(op)) {
      path.insert(path.begin(), field.getName().str());
      collect(field.getBundle(), path, seen, found);
    } else if (auto bundle = dyn_cast<BundleOp>(op); bundle && path.empty()) {
      fields = bundle.getNames();
    } else if (bundle) {
      for (auto [name, part] :
           llvm::zip(bundle.getNames().getAsValueRange<StringAttr>(), bundle.getFields()))
        if (name == path.front())
          collect(part, {path.begin() + 1, path.end()}, seen, found);
    } else if (auto scan = dyn_cast<ScanOp>(op)) {
      if (number >= scan.stackedCount())
        collect(scan.getInits()[number - scan.stackedCount()], path, seen, found);
    } else if (auto scan = dyn_cast<PrefixScanOp>(op)) {
      collect(scan->getOperand(number), path, seen, found);
    }
  }
  if (found.size() == before && path.empty())
    collectUses(value, 0, found);
}

/// From what reads it: operations that do not stretch their operands have it as it is.
void Semantics::collectUses(Value value, unsigned depth, Values &found) {
  constexpr unsigned kMostDepth = 8;
  for (OpOperand &operand : value.getUses()) {
    Operation *op = operand.getOwner();
    if (auto call = dyn_cast<CallOp>(op)) {
      auto callee = analysis.written().lookupSymbol<DefOp>(call.getCalleeAttr());
      if (callee && depth < kMostDepth && found.empty())
        collectUses(callee.getBody().getArgument(operand.getOperandNumber()), depth + 1, found);
      continue;
    }
    const std::optional<Place> place = placeOf(op->getLoc());
    if (!place || op->hasTrait<Elementwise>())
      continue;
    for (const Use &use : uses.at(*place))
      if (use.op->getName() == op->getName() && use.op->getNumOperands() == op->getNumOperands())
        found.push_back(use.op->getOperand(operand.getOperandNumber()));
  }
}

static std::string numbersText(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << type.getElementType() << " [";
  llvm::interleaveComma(type.getShape(), out);
  out << ']';
  return text;
}

static uint64_t bytesOf(RankedTensorType type) {
  const uint64_t bits = type.getElementType().getIntOrFloatBitWidth();
  return llvm::SaturatingMultiply<uint64_t>(type.getNumElements(), (bits + 7) / 8);
}

std::string Semantics::typesText(ArrayRef<Value> values) {
  constexpr size_t kMost = 6;
  llvm::MapVector<Type, Value> types;
  for (Value value : values)
    if (isa<RankedTensorType>(value.getType()))
      types.insert({value.getType(), value});
  if (types.empty())
    return "";
  if (!symbolic)
    symbolic.emplace(analysis);
  std::string text;
  for (auto &[type, value] : types.takeVector()) {
    if (static_cast<size_t>(llvm::count(text, '\n')) / 2 == kMost) {
      text += "and others\n\n";
      break;
    }
    auto tensor = cast<RankedTensorType>(type);
    const std::string numbers = numbersText(tensor), symbols = symbolic->shapeOf(value);
    text += "`" + numbers + "`";
    if (!StringRef(numbers).ends_with(symbols))
      text += " = `" + symbols + "`";
    text += ", " + bytesText(bytesOf(tensor)) + "\n\n";
  }
  return text;
}

std::string Semantics::ofValue(const Name &name) {
  Values found;
  fields = nullptr;
  Seen seen;
  if (name.isArgument) {
    const Place place = placeOfToken(name.token);
    if (auto argument = writtenArguments.find(place); argument != writtenArguments.end())
      collect(argument->second, {}, seen, found);
    else
      llvm::append_range(found, uses.argumentsAt(place));
  } else if (name.statement != kNone) {
    auto op = written.find(placeOfToken(names.allStatements()[name.statement].word));
    if (op != written.end() && name.number < op->second->getNumResults())
      collect(op->second->getResult(name.number), {}, seen, found);
  }
  if (found.empty() && fields) {
    std::string text;
    for (StringRef field : fields.getAsValueRange<StringAttr>())
      text += (text.empty() ? "bundle of `" : ", `") + field.str() + "`";
    return text + "\n\n";
  }
  if (found.empty() && name.statement != kNone && isAbsent(name.statement))
    return "not there in this configuration\n\n";
  return typesText(found);
}

bool Semantics::isAbsent(unsigned number) const {
  const Statement &statement = names.allStatements()[number];
  auto op = written.find(placeOfToken(statement.word));
  if (op == written.end())
    return false;
  bool computes = false;
  op->second->walk([&](Operation *inner) { computes |= isa<CostOpInterface, CallOp>(inner); });
  const Text &text = names.source();
  return computes && uses.between(text.placeOf(names.allTokens()[statement.word].begin),
                                  text.placeOf(names.allTokens()[statement.last].end))
                         .empty();
}

//===-- Work --------------------------------------------------------------------------------===//

/// `12 × 1,024 = 12,288`, or the number alone.
static std::string manyTimes(uint64_t count, uint64_t total, std::string (*text)(uint64_t)) {
  if (count <= 1 || total == 0 || total % count != 0)
    return text(total);
  return countText(count) + " × " + text(total / count) + " = " + text(total);
}

std::string Semantics::costText(ArrayRef<const Use *> list) const {
  struct Sum {
    uint64_t flops = 0, bytes = 0;
    /// Of each operation of the text a use, and the executions of all.
    std::map<std::pair<Place, StringRef>, std::pair<const Use *, uint64_t>> operations;
    std::vector<std::string> layers;
    bool outside = false; ///< of all layers is some of it
    bool alike = true;
  };
  llvm::MapVector<StringRef, Sum> programs;
  for (const Use *use : list) {
    if (!isa<CostOpInterface>(use->op))
      continue;
    Sum &sum = programs[use->program];
    sum.flops = llvm::SaturatingAdd(sum.flops, use->flops);
    sum.bytes = llvm::SaturatingAdd(sum.bytes, use->bytes);
    sum.alike &= use->alike;
    // Binding adds operations beside another, such as broadcasts, which run as often as that.
    auto &[first, count] =
        sum.operations[{*placeOf(use->op->getLoc()), use->op->getName().getStringRef()}];
    first = first ? first : use;
    count += use->count;
    // Calls of a definition with other shapes are other work.
    sum.alike &= first->flops * use->count == use->flops * first->count &&
                 first->bytes * use->count == use->bytes * first->count;
    sum.outside |= use->layers.empty();
    if (!use->layers.empty() && !llvm::is_contained(sum.layers, use->layers))
      sum.layers.push_back(use->layers);
  }
  llvm::StringMap<std::string> owners; // programs of the same work are one line
  SmallVector<std::string> works;
  for (auto &[program, sum] : programs) {
    uint64_t count = 0;
    for (auto &[place, executions] : sum.operations)
      count = std::gcd(count, executions.second);
    std::string work;
    if (!sum.outside)
      for (const std::string &part : ArrayRef(sum.layers).take_front(4))
        work += ", " + part;
    work += ": " + manyTimes(sum.alike ? count : 1, sum.flops, countText) + " FLOPs, " +
            manyTimes(sum.alike ? count : 1, sum.bytes, bytesText) + " read and written\n";
    std::string &owner = owners[work];
    if (owner.empty())
      works.push_back(work);
    owner += (owner.empty() ? "`@" : ", `@") + program.str() + "`";
  }
  std::string text;
  for (const std::string &work : works)
    text += "- " + owners[work] + work;
  return text.empty() ? text : text + "\n";
}

std::string Semantics::resultsOf(unsigned token, StringRef operation) {
  Values results;
  for (const Use &use : uses.at(placeOfToken(token)))
    if (use.op->getName().stripDialect() == operation)
      llvm::append_range(results, use.op->getResults());
  return typesText(results);
}

std::string Semantics::costAt(unsigned token) const {
  SmallVector<const Use *> own;
  for (const Use &use : uses.at(placeOfToken(token)))
    own.push_back(&use);
  return costText(own);
}

std::string Semantics::costOf(unsigned number) const {
  const Statement &statement = names.allStatements()[number];
  const Text &text = names.source();
  return costText(uses.between(text.placeOf(names.allTokens()[statement.word].begin),
                               text.placeOf(names.allTokens()[statement.last].end)));
}

//===-- Variables and symbols ---------------------------------------------------------------===//

SmallVector<int64_t> Semantics::layersOf(Operation *variable) const {
  SmallVector<int64_t> layers;
  auto stack = dyn_cast<StackOp>(variable->getParentOp());
  if (!stack)
    return layers;
  Attribute condition = variable->getAttr("condition");
  for (int64_t layer = 0; layer < stack.getCount(); ++layer) {
    Environment environment;
    environment.values[kLayerSymbol] = Builder(variable->getContext()).getI64IntegerAttr(layer);
    if (condition) {
      FailureOr<Attribute> holds =
          evaluate(condition, environment, [&] { return variable->emitOpError(); });
      if (failed(holds) || *holds != BoolAttr::get(variable->getContext(), true))
        continue;
    }
    layers.push_back(layer);
  }
  return layers;
}

/// `normal(0.02)`.
static std::string initText(InitAttr init) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << init;
  StringRef inner = text;
  inner.consume_front("#hydra.init<");
  inner.consume_back(">");
  return inner.str();
}

std::string Semantics::ofVariable(const Name &name) {
  // The place of a declaration is that of its operation.
  const Place place = placeOfToken(names.allStatements()[name.statement].word);
  Operation *variable = nullptr;
  analysis.bound().walk([&](Operation *op) {
    if (isa<ParamOp, StateOp>(op) && placeOf(op->getLoc()) == place)
      variable = op;
  });
  if (!variable)
    return "not there in this configuration\n\n";
  auto param = dyn_cast<ParamOp>(variable);
  auto type = param ? param.getBoundType() : cast<StateOp>(variable).getBoundType();
  if (!type)
    return "";
  std::string text = "`" + numbersText(type) + "`, " + countText(type.getNumElements()) +
                     " elements, " + bytesText(bytesOf(type)) + "\n\n";
  if (auto stack = dyn_cast<StackOp>(variable->getParentOp())) {
    const SmallVector<int64_t> layers = layersOf(variable);
    if (layers.empty())
      return text + "no layer has it\n\n";
    auto file = [&](int64_t layer) {
      return "`" + (stack.getSymName() + "." + Twine(layer) + "." + name.name).str() + "`";
    };
    text += std::to_string(layers.size()) + " tensors, " + file(layers.front()) + " to " +
            file(layers.back()) + ": " +
            countText(llvm::SaturatingMultiply<uint64_t>(layers.size(), type.getNumElements())) +
            " elements, " +
            bytesText(llvm::SaturatingMultiply<uint64_t>(layers.size(), bytesOf(type))) + "\n\n";
  }
  text += "starts as `" + initText(cast<InitAttr>(variable->getAttr("init"))) + "`";
  if (param && param.getGroup())
    text += ", group `@" + param.getGroup()->str() + "`";
  if (param && param.getFrozen())
    text += ", frozen: not trained";
  text += "\n\n";
  if (param && param.getOrigin())
    text += "in files of other programs `" + param.getOrigin()->str() + "`" +
            (param.getTransposed() ? ", transposed" : "") + "\n\n";
  return text;
}

std::string Semantics::ofSymbol(const Name &name) {
  const BindingOptions &binding = analysis.binding();
  std::string value;
  if (name.statement != kNone && names.operationOf(name.statement) == "def")
    return "";
  if (name.isArgument) { // a dimension of an entry
    if (name.name == "B" && binding.batch > 0)
      value = std::to_string(binding.batch);
    else if (name.name == "S" && binding.seq > 0)
      value = std::to_string(binding.seq);
    for (StringRef setting : binding.settings)
      if (auto [key, given] = setting.split('='); key.trim() == name.name)
        value = given.trim().str();
  } else if (Attribute found = analysis.bound().getSymbolValue(name.name)) {
    llvm::raw_string_ostream out(value);
    if (auto integer = dyn_cast<IntegerAttr>(found); integer && !isa<BoolAttr>(found))
      out << integer.getInt();
    else if (auto real = dyn_cast<FloatAttr>(found))
      out << llvm::format("%g", real.getValueAsDouble());
    else if (auto word = dyn_cast<StringAttr>(found))
      out << word.getValue();
    else
      out << found;
  }
  if (value.empty())
    return "";
  return "`" + name.name.str() + " = " + value + "`" +
         (binding.preset.empty() || name.isArgument ? ""
                                                    : " with preset `" + binding.preset + "`") +
         "\n\n";
}

std::string Semantics::ofModel() {
  uint64_t elements = 0, bytes = 0;
  analysis.bound().walk([&](ParamOp param) {
    const uint64_t count = isa<StackOp>(param->getParentOp()) ? layersOf(param).size() : 1;
    if (RankedTensorType type = param.getBoundType()) {
      elements = llvm::SaturatingAdd<uint64_t>(
          elements, llvm::SaturatingMultiply<uint64_t>(count, type.getNumElements()));
      bytes = llvm::SaturatingAdd<uint64_t>(bytes, llvm::SaturatingMultiply(count, bytesOf(type)));
    }
  });
  const std::string &preset = analysis.binding().preset;
  return (preset.empty() ? std::string() : "preset `" + preset + "`: ") + countText(elements) +
         " parameters, " + bytesText(bytes) + "\n\n";
}

} // namespace hydra::lsp
