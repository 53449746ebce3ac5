// Random operations on values.
#include "test/support/RandomOps.h"

#include "llvm/Support/FormatVariadic.h"

namespace hydra::test {

static std::string number(double value) { return llvm::formatv("{0:f3}", value).str(); }

static Dim product(const Dim &a, const Dim &b) {
  auto factor = [](const Dim &d) {
    return d.text.find(' ') == std::string::npos ? d.text : "(" + d.text + ")";
  };
  return {factor(a) + " * " + factor(b), a.size * b.size};
}

static bool isOne(const Dim &d) { return d.text == "1"; }

bool isModelDim(const Dim &d) {
  // Names of symbols are words, so that these letters stand alone.
  return d.text.find_first_of("BS") == std::string::npos;
}

std::optional<Shape> broadcastShape(const Shape &a, const Shape &b) {
  const Shape &wide = a.size() >= b.size() ? a : b, &narrow = a.size() >= b.size() ? b : a;
  Shape result = wide;
  for (size_t i = 0; i < narrow.size(); ++i) {
    Dim &d = result[wide.size() - narrow.size() + i];
    if (isOne(d))
      d = narrow[i];
    else if (!isOne(narrow[i]) && !(narrow[i] == d))
      return std::nullopt;
  }
  return result;
}

//===-- Building blocks ---------------------------------------------------------------------===//

Statement &OpWriter::add(Statement statement) {
  scope.code->push_back(std::move(statement));
  return scope.code->back();
}

const Operand &OpWriter::remember(Operand x) {
  scope.values.push_back(std::move(x));
  return scope.values.back();
}

Operand OpWriter::op(const std::string &name, const std::vector<Operand> &operands,
                     const std::string &attributes, const Shape &shape, double size) {
  Operand result{freshName("v"), shape, size};
  Statement s;
  s.op = name;
  s.results = {result.name};
  s.attributes = attributes;
  for (const Operand &x : operands)
    s.operands.push_back(x.name);
  add(std::move(s));
  return result;
}

Operand OpWriter::unary(const std::string &name, const Operand &x, double size) {
  return op(name, {x}, "", x.shape, size);
}

Operand OpWriter::binary(const std::string &name, const Operand &a, const Operand &b, double size) {
  const Shape shape = *broadcastShape(a.shape, b.shape);
  Operand result = op(name, {a, b}, "", shape, size);
  Statement &s = scope.code->back();
  s.broadcast = shape;
  s.repeated = {a.shape != shape, b.shape != shape};
  return result;
}

Operand OpWriter::constant(double value) {
  return op("constant", {}, "value = " + number(value), {}, std::abs(value));
}

Operand OpWriter::tame(Operand x) {
  if (x.size <= 2.0)
    return x;
  if (random.chance(0.5))
    return unary("tanh", x, 1.0);
  return binary("mul", x, constant(1.0 / x.size), 1.0);
}

Operand OpWriter::reshape(const Operand &x, const Shape &shape) {
  return op("reshape", {x}, "shape = " + textOf(shape), shape, x.size);
}

Operand OpWriter::reduceAll(const Operand &x) {
  if (x.shape.empty())
    return x;
  std::string axes;
  for (size_t i = 0; i < x.shape.size(); ++i)
    axes += (i ? ", " : "") + std::to_string(i);
  return op("mean", {x}, "axes = [" + axes + "]", {}, x.size);
}

Operand OpWriter::parameter(Shape shape) {
  for (Dim &d : shape)
    if (!isModelDim(d))
      d = {"1", 1};
  Operand result{freshName("p"), shape, 0.6};
  Statement use;
  use.op = "use";
  use.results = {result.name};
  std::vector<std::string> tied;
  for (const Variable &v : model.variables)
    if (!v.isState && v.dtype == "f32" && v.shape == shape && v.condition.text.empty())
      tied.push_back(v.name);
  if (!tied.empty() && random.chance(0.2)) {
    use.symbol = random.pick(tied);
    add(std::move(use));
    return result;
  }
  Variable v;
  v.name = freshName("w");
  v.shape = shape;
  // What only some layers run may be what no layer runs: only their own parameters can go away too.
  const bool perLayer = scope.stack && (scope.condition.usesLayer || random.chance(0.8));
  static const std::vector<std::string> inits = {"zeros", "ones", "normal(0.5)", "uniform(0.25)",
                                                 "trunc_normal(0.1, 2.0)"};
  v.init = perLayer && random.chance(0.2) ? "constant(0.5 / (layer + 1))" : random.pick(inits);
  if (random.chance(0.3))
    v.group = "slow";
  const bool narrow = random.chance(0.1);
  v.dtype = !narrow ? "f32" : random.chance(0.5) ? "bf16" : "f16";
  v.condition = scope.condition;
  use.symbol = v.name;
  (perLayer ? scope.stack->variables : model.variables).push_back(std::move(v));
  add(std::move(use));
  return narrow ? op("cast", {result}, "to = f32", shape, result.size) : result;
}

const Operand &OpWriter::any() {
  // Later values more often, so that programs are deep as well as wide.
  const int64_t n = static_cast<int64_t>(scope.values.size());
  return scope.values[static_cast<size_t>(
      random.chance(0.5) ? n - 1 - random.below(std::min<int64_t>(n, 4)) : random.below(n))];
}

std::optional<Operand> OpWriter::find(const std::function<bool(const Operand &)> &fits) {
  std::vector<Operand> candidates;
  for (const Operand &x : scope.values)
    if (fits(x))
      candidates.push_back(x);
  if (candidates.empty())
    return std::nullopt;
  return random.pick(candidates);
}

std::optional<Operand> OpWriter::withRank(size_t least, size_t most) {
  return find([&](const Operand &x) { return x.shape.size() >= least && x.shape.size() <= most; });
}

Dim OpWriter::dim(const std::string &symbol) const { return {symbol, sizes.at(symbol)}; }

Dim OpWriter::someWidth() {
  static const std::vector<std::string> widths = {"D", "F", "V", "hd"};
  return dim(random.pick(widths));
}

//===-- Elementwise -------------------------------------------------------------------------===//

bool OpWriter::elementwise() {
  Operand x = any();
  static const std::vector<std::string> names = {"neg", "exp",  "log", "sqrt",    "rsqrt", "sin",
                                                 "cos", "tanh", "erf", "sigmoid", "silu",  "gelu"};
  const std::string name = random.pick(names);
  if (name == "log" || name == "sqrt" || name == "rsqrt") {
    x = binary("mul", x, x, x.size * x.size);
    x = binary("add", x, constant(1.5), 2.0);
    remember(unary(name, x, 1.0));
    return true;
  }
  if (name == "exp" && x.size > 1.0)
    x = unary("tanh", x, 1.0);
  if (name == "neg" && random.chance(0.3))
    x = unary("neg", x, x.size);
  remember(tame(unary(name, x,
                      name == "exp"                                         ? 2.0
                      : name == "sigmoid" || name == "sin" || name == "cos" ? 1.0
                                                                            : x.size)));
  return true;
}

bool OpWriter::arithmetic() {
  const Operand a = any();
  std::optional<Operand> b = find([&](const Operand &x) {
    std::optional<Shape> shape = broadcastShape(a.shape, x.shape);
    return shape && elementsOf(*shape) <= kMostElements;
  });
  if (random.chance(0.3) && !a.shape.empty()) { // a scale or shift of trailing dimensions
    Shape shape(a.shape.begin() + random.below(static_cast<int64_t>(a.shape.size())),
                a.shape.end());
    if (random.chance(0.3))
      shape[0] = {"1", 1};
    b = parameter(shape);
  }
  if (!b) // `a` is as large as values get
    return false;
  static const std::vector<std::string> names = {"add", "sub", "mul", "div", "max", "min"};
  const std::string name = random.pick(names);
  if (name == "div") {
    Operand divisor = unary("sigmoid", *b, 1.0);
    divisor = binary("add", divisor, constant(0.5), 1.0);
    remember(tame(binary("div", a, divisor, a.size)));
    return true;
  }
  const double size = name == "mul"                    ? a.size * b->size
                      : name == "add" || name == "sub" ? std::hypot(a.size, b->size)
                                                       : std::max(a.size, b->size);
  if (random.chance(0.5))
    remember(tame(binary(name, a, *b, size)));
  else
    remember(tame(binary(name, *b, a, size)));
  return true;
}

bool OpWriter::constants() {
  // On either side, and often the numbers that folders look for.
  const Operand x = any();
  const double value = random.pick<double>({0.0, 1.0, -1.0, random.uniform()});
  Operand c;
  if (random.chance(0.7))
    c = constant(value);
  else
    c = op("constant", {},
           "value = " + number(value) + " shape = " + textOf(x.shape) + " dtype = f32", x.shape,
           std::abs(value));
  static const std::vector<std::string> names = {"add", "sub", "mul", "max", "min"};
  const std::string name = random.pick(names);
  if (std::abs(value) > 0.5 && random.chance(0.3))
    remember(binary("div", x, c, 2.0 * x.size));
  else if (random.chance(0.6))
    remember(binary(name, x, c, x.size));
  else
    remember(binary(name, c, x, x.size));
  return true;
}

bool OpWriter::picking() {
  Operand a = any();
  std::optional<Operand> b = find([&](const Operand &x) { return x.shape == a.shape; });
  static const std::vector<std::string> predicates = {"lt", "le", "gt", "ge", "ne", "eq"};
  auto compare = [&](const Operand &x, const Operand &y, const std::string &is) {
    Operand c = binary("compare", x, y, 1.0);
    scope.code->back().attributes = "is = \"" + is + "\"";
    return c;
  };
  Operand condition;
  if (a.shape.size() >= 2 && random.chance(0.5)) { // a mask of the last two dimensions
    Shape shape(a.shape.end() - 2, a.shape.end());
    Operand i = op("iota", {}, "shape = " + textOf(shape) + " axis = 0", shape, 1.0);
    Operand j = op("iota", {}, "shape = " + textOf(shape) + " axis = 1 dtype = i32", shape, 1.0);
    condition = compare(i, j, random.pick(predicates));
  } else {
    Operand limit = random.chance(0.5) ? *b : constant(random.uniform());
    condition = compare(a, limit, predicates[static_cast<size_t>(random.below(4))]);
  }
  const Operand other = random.chance(0.5) ? *b : constant(random.uniform());
  Operand result = op("select", {condition, a, other}, "", a.shape, std::max(a.size, other.size));
  Statement &s = scope.code->back();
  s.broadcast = a.shape;
  s.repeated = {condition.shape != a.shape, false, other.shape != a.shape};
  remember(result);
  return true;
}

bool OpWriter::casting() {
  const Operand x = any();
  constexpr double most = 1e3; // far below the largest number of f16
  const char *to = x.size < most && random.chance(0.5) ? "to = f16" : "to = bf16";
  Operand y = op("cast", {x}, to, x.shape, x.size);
  if (random.chance(0.5))
    y = unary("tanh", y, std::min(1.0, x.size));
  if (random.chance(0.3))
    y = op("cast", {y}, to, y.shape, y.size);
  remember(op("cast", {y}, "to = f32", x.shape, y.size));
  return true;
}

bool OpWriter::counting() {
  const std::optional<Operand> x = withRank(1, 4);
  if (!x)
    return false;
  const int64_t axis = random.below(static_cast<int64_t>(x->shape.size()));
  Operand i = op("iota", {}, "shape = " + textOf(x->shape) + " axis = " + std::to_string(axis),
                 x->shape, 3.0);
  i = op("cast", {i}, "to = f32", x->shape, 3.0);
  Operand slope = binary("mul", i, constant(0.25 * random.uniform()), 0.5);
  remember(binary("add", *x, slope, std::hypot(x->size, 0.5)));
  return true;
}

bool OpWriter::dropping() {
  const Operand x = any();
  const double part = 0.375 * (random.uniform() + 1.0);
  remember(op("dropout", {x}, random.chance(0.3) ? "p = 0.5" : "p = " + number(part), x.shape,
              x.size / std::sqrt(1.0 - part)));
  return true;
}

//===-- Reductions and movement -------------------------------------------------------------===//

bool OpWriter::reducing() {
  const std::optional<Operand> x = withRank(1, 4);
  if (!x)
    return false;
  const int64_t rank = static_cast<int64_t>(x->shape.size());
  std::vector<bool> mask(x->shape.size(), false);
  mask[static_cast<size_t>(random.below(rank))] = true;
  if (random.chance(0.4))
    mask[static_cast<size_t>(random.below(rank))] = true;
  const bool keep = random.chance(0.4);
  Shape shape;
  std::string axes;
  double reduced = 1.0;
  for (int64_t i = 0; i < rank; ++i) {
    const Dim &d = x->shape[static_cast<size_t>(i)];
    if (!mask[static_cast<size_t>(i)]) {
      shape.push_back(d);
      continue;
    }
    reduced *= static_cast<double>(d.size);
    if (keep)
      shape.push_back({"1", 1});
    axes += (axes.empty() ? "" : ", ") + std::to_string(random.chance(0.5) ? i : i - rank);
  }
  static const std::vector<std::string> names = {"sum", "mean", "mean", "reduce_max"};
  const std::string name = random.pick(names);
  const double size = name == "sum" ? x->size * std::sqrt(reduced) : x->size;
  remember(tame(op(name, {*x}, "axes = [" + axes + "]" + (keep ? " keep" : ""), shape, size)));
  return true;
}

bool OpWriter::reshaping() {
  const Operand x = any();
  Shape shape = x.shape;
  const size_t rank = shape.size();
  switch (random.below(4)) {
  case 0: // a unit dimension more, or one less
    if (rank > 1 && isOne(shape[0]))
      shape.erase(shape.begin());
    else if (rank < 4)
      shape.insert(shape.begin() + random.below(static_cast<int64_t>(rank) + 1), Dim{"1", 1});
    break;
  case 1: { // two neighbours as one
    if (rank < 2)
      return false;
    const size_t i = static_cast<size_t>(random.below(static_cast<int64_t>(rank) - 1));
    shape[i] = product(shape[i], shape[i + 1]);
    shape.erase(shape.begin() + static_cast<int64_t>(i) + 1);
    break;
  }
  case 2: // heads
    if (rank == 0 || rank > 3 || shape.back().text != "D")
      return false;
    shape.back() = dim("H");
    shape.push_back(dim("hd"));
    break;
  default: { // explicit repetition
    if (rank >= 4 || elementsOf(shape) * 3 > kMostElements)
      return false;
    shape.insert(shape.begin(), random.chance(0.5) ? Dim{"3", 3} : dim("B"));
    if (elementsOf(shape) > kMostElements)
      return false;
    remember(op("broadcast", {x}, "shape = " + textOf(shape), shape, x.size));
    return true;
  }
  }
  const Operand y = reshape(x, shape);
  remember(random.chance(0.2) ? reshape(y, x.shape) : y);
  return true;
}

bool OpWriter::moving() {
  const std::optional<Operand> x = withRank(1, 4);
  if (!x)
    return false;
  const size_t rank = x->shape.size();
  const size_t axis = static_cast<size_t>(random.below(static_cast<int64_t>(rank)));
  const Dim d = x->shape[axis];
  Shape shape = x->shape;
  switch (random.below(3)) {
  case 0: {
    std::vector<size_t> order(rank);
    std::string text;
    for (size_t i = 0; i < rank; ++i) {
      order[i] = i;
      std::swap(order[i], order[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
    }
    for (size_t i = 0; i < rank; ++i) {
      shape[i] = x->shape[order[i]];
      text += (i ? ", " : "") + std::to_string(order[i]);
    }
    remember(op("transpose", {*x}, "order = [" + text + "]", shape, x->size));
    return true;
  }
  case 1: {
    const int64_t size = random.between(1, d.size), start = random.between(0, d.size - size);
    const bool symbolic = d.text.find(' ') == std::string::npos;
    shape[axis] = size == d.size                   ? d
                  : size == d.size - 1 && symbolic ? Dim{d.text + " - 1", size}
                                                   : Dim{std::to_string(size), size};
    remember(op("slice", {*x},
                "axis = " + std::to_string(axis) + " start = " + std::to_string(start) +
                    " size = " + shape[axis].text,
                shape, x->size));
    return true;
  }
  default: {
    const int64_t before = random.below(3), after = random.below(3);
    if (before + after)
      shape[axis] = {d.text + " + " + std::to_string(before + after), d.size + before + after};
    if (elementsOf(shape) > kMostElements)
      return false;
    remember(op("pad", {*x},
                "axis = " + std::to_string(axis) + " before = " + std::to_string(before) +
                    " after = " + std::to_string(after),
                shape, x->size));
    return true;
  }
  }
}

bool OpWriter::joining() {
  const std::optional<Operand> x = withRank(1, 4);
  if (!x)
    return false;
  const size_t axis = static_cast<size_t>(random.below(static_cast<int64_t>(x->shape.size())));
  std::vector<Operand> parts = {*x};
  Shape shape = x->shape;
  for (int64_t more = random.below(3); more > 0; --more) {
    const std::optional<Operand> y = find([&](const Operand &v) {
      if (v.shape.size() != shape.size())
        return false;
      for (size_t i = 0; i < shape.size(); ++i)
        if (i != axis && !(v.shape[i] == shape[i]))
          return false;
      return elementsOf(v.shape) + elementsOf(shape) <= kMostElements;
    });
    if (!y)
      break;
    parts.push_back(*y);
    shape[axis] = {shape[axis].text + " + " + y->shape[axis].text,
                   shape[axis].size + y->shape[axis].size};
  }
  double size = 0.0;
  for (const Operand &p : parts)
    size = std::max(size, p.size);
  remember(op("concat", parts, "axis = " + std::to_string(axis), shape, size));
  return true;
}

//===-- The choice --------------------------------------------------------------------------===//

void OpWriter::step() {
  static const Family families[] = {
      {3, &OpWriter::elementwise}, {4, &OpWriter::arithmetic}, {1, &OpWriter::constants},
      {1, &OpWriter::picking},     {1, &OpWriter::casting},    {1, &OpWriter::counting},
      {1, &OpWriter::dropping},    {2, &OpWriter::reducing},   {2, &OpWriter::reshaping},
      {2, &OpWriter::moving},      {1, &OpWriter::joining},    {2, &OpWriter::linear},
      {2, &OpWriter::matmul},      {1, &OpWriter::embedding},  {1, &OpWriter::routing},
      {2, &OpWriter::norm},        {1, &OpWriter::softmax},    {1, &OpWriter::rope},
      {2, &OpWriter::attention},   {1, &OpWriter::loss},       {1, &OpWriter::grouping},
      {1, &OpWriter::transforms},  {1, &OpWriter::magnitudes}, {1, &OpWriter::recurrences},
  };
  double total = 0.0;
  for (const Family &f : families)
    total += f.weight;
  while (true) {
    double draw = 0.5 * (random.uniform() + 1.0) * total;
    for (const Family &f : families) {
      if ((draw -= f.weight) >= 0.0)
        continue;
      if ((this->*f.write)())
        return;
      break;
    }
  }
}

} // namespace hydra::test
