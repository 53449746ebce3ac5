// Which symbols the dimensions of a bound model are made of.
#include "tools/hydra-lsp/SymbolicShapes.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <optional>

using namespace mlir;

namespace hydra::lsp {

namespace {

/// The values of a bound model by their places and, of one place, their order.
std::map<Place, SmallVector<Value>> valuesOf(ModelOp model) {
  std::map<Place, SmallVector<Value>> values;
  auto add = [&](Value value) {
    if (std::optional<Place> place = placeOf(value.getLoc()))
      values[*place].push_back(value);
  };
  model.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value result : op->getResults())
      add(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          add(argument);
  });
  return values;
}

std::optional<int64_t> integerOf(Attribute value) {
  auto integer = dyn_cast_if_present<IntegerAttr>(value);
  if (!integer || !integer.getType().isSignlessInteger(64))
    return std::nullopt;
  return integer.getInt();
}

/// The integers of a bound model by the names of their symbols, derived ones too, and the
/// dimensions of entries.
std::map<std::string, int64_t> integersOf(ModelOp model, const BindingOptions &binding) {
  std::map<std::string, int64_t> integers;
  if (auto bound = model.getBoundAttr().getAs<DictionaryAttr>("symbols"))
    for (NamedAttribute a : bound)
      if (std::optional<int64_t> value = integerOf(a.getValue()))
        integers[a.getName().str()] = *value;
  if (binding.batch > 0)
    integers["B"] = binding.batch;
  if (binding.seq > 0)
    integers["S"] = binding.seq;
  return integers;
}

/// With a symbol `times` as large.
BindingOptions enlarged(BindingOptions binding, const std::string &symbol, int64_t value,
                        int64_t times) {
  if (symbol == "B" && binding.batch > 0)
    binding.batch *= times;
  else if (symbol == "S" && binding.seq > 0)
    binding.seq *= times;
  else
    binding.settings.push_back(symbol + "=" + std::to_string(value * times));
  return binding;
}

} // namespace

SymbolicShapes::SymbolicShapes(Analysis &analysis) {
  const std::map<Place, SmallVector<Value>> base = valuesOf(analysis.bound());
  for (auto &[place, values] : base)
    for (Value value : values)
      if (auto type = dyn_cast<RankedTensorType>(value.getType()))
        for (int64_t size : type.getShape())
          shapes[value].push_back({size});
  const std::map<std::string, int64_t> integers = integersOf(analysis.bound(), analysis.binding());
  for (auto &[name, value] : integers)
    symbols.push_back({name, {value}});

  // What may be enlarged: dimensions that are declared, not those that are derived.
  llvm::StringSet<> declared;
  for (const Name &name : analysis.text().allNames())
    if (name.kind == NameKind::Dim)
      declared.insert(name.name);
  size_t samples = 1;
  for (auto &[name, value] : integers) {
    if (!declared.contains(name) || value == 0)
      continue;
    OwningOpRef<ModuleOp> module;
    BindingOptions binding;
    for (int64_t times : {2, 3}) {
      binding = enlarged(analysis.binding(), name, value, times);
      if ((module = analysis.bind(binding)))
        break;
    }
    if (!module)
      continue; // such as a window that has to stay what it is
    ModelOp model = *module->getOps<ModelOp>().begin();
    const std::map<std::string, int64_t> changed = integersOf(model, binding);
    for (Symbol &symbol : symbols)
      if (auto found = changed.find(symbol.name); found != changed.end())
        symbol.values.push_back(found->second);
    for (auto &[place, values] : valuesOf(model)) {
      auto before = base.find(place);
      if (before == base.end() || before->second.size() != values.size())
        continue; // another configuration
      for (auto [was, is] : llvm::zip(before->second, values)) {
        auto type = dyn_cast<RankedTensorType>(is.getType());
        std::vector<Sample> &dims = shapes[was];
        if (type && static_cast<size_t>(type.getRank()) == dims.size())
          for (auto [sample, size] : llvm::zip(dims, type.getShape()))
            sample.push_back(size);
      }
    }
    ++samples;
    // What this binding says nothing about has no expression.
    for (auto &[value, dims] : shapes)
      for (Sample &sample : dims)
        sample.resize(samples, -1);
    for (Symbol &symbol : symbols)
      symbol.values.resize(samples, -1);
  }
}

/// `c * text`, or the text alone.
static std::string scaled(int64_t factor, const std::string &text) {
  return factor == 1 ? text : std::to_string(factor) + " * " + text;
}

std::string SymbolicShapes::dimension(const Sample &sample) const {
  const std::string number = std::to_string(sample[0]);
  if (llvm::all_equal(sample))
    return number;
  auto product = [](const Sample &a, const Sample &b) {
    Sample result;
    for (auto [x, y] : llvm::zip(a, b))
      result.push_back(static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)));
    return result;
  };
  // The number of times that all of `part` is in all of the sample, behind `start`.
  auto times = [&](const Sample &part, const Sample *start) -> int64_t {
    auto rest = [&](size_t i) { return sample[i] - (start ? (*start)[i] : 0); };
    if (part[0] == 0 || rest(0) % part[0] != 0)
      return 0;
    const int64_t factor = rest(0) / part[0];
    for (size_t i = 0; i < sample.size(); ++i)
      if (static_cast<int64_t>(static_cast<uint64_t>(factor) * static_cast<uint64_t>(part[i])) !=
          rest(i))
        return 0;
    return factor;
  };
  const Sample ones(sample.size(), 1);
  for (int64_t wanted : {1, 0}) // a symbol alone is better than several of another
    for (const Symbol &a : symbols)
      if (int64_t factor = times(a.values, nullptr); factor > 0 && (!wanted || factor == wanted))
        return scaled(factor, a.name);
  for (const Symbol &a : symbols)
    if (int64_t rest = times(ones, &a.values); rest != 0 && !llvm::all_equal(a.values))
      return a.name + (rest > 0 ? " + " : " - ") + std::to_string(std::abs(rest));
  for (int64_t wanted : {1, 0})
    for (size_t i = 0; i < symbols.size(); ++i)
      for (size_t j = i; j < symbols.size(); ++j)
        if (int64_t factor = times(product(symbols[i].values, symbols[j].values), nullptr);
            factor > 0 && (!wanted || factor == wanted))
          return scaled(factor, symbols[i].name + " * " + symbols[j].name);
  for (const Symbol &a : symbols)
    for (const Symbol &b : symbols)
      if (int64_t factor = times(b.values, &a.values);
          factor > 0 && !llvm::all_equal(a.values) && !llvm::all_equal(b.values))
        return a.name + " + " + scaled(factor, b.name);
  for (size_t i = 0; i < symbols.size(); ++i)
    for (size_t j = i; j < symbols.size(); ++j)
      for (size_t k = j; k < symbols.size(); ++k)
        if (int64_t factor = times(
                product(product(symbols[i].values, symbols[j].values), symbols[k].values), nullptr);
            factor > 0)
          return scaled(factor,
                        symbols[i].name + " * " + symbols[j].name + " * " + symbols[k].name);
  return number;
}

std::string SymbolicShapes::shapeOf(Value value) const {
  auto found = shapes.find(value);
  std::string text = "[";
  if (found != shapes.end())
    for (const Sample &sample : found->second)
      text += (text.size() > 1 ? ", " : "") + dimension(sample);
  return text + "]";
}

} // namespace hydra::lsp
