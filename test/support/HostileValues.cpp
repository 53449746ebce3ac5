// Values of a given shape, from wherever a program may have them, and the plainest operations.
#include "test/support/HostileWriter.h"

#include <algorithm>
#include <cmath>

namespace hydra::test::hostile {

//===-- Sources -----------------------------------------------------------------------------===//

Value Writer::constant(double value, const Shape &shape, Element element) {
  Value result{.shape = shape, .element = element, .size = std::abs(value), .low = value};
  result.repeatable = true;
  const bool integer = element == Element::I32;
  if (integer)
    result.first = result.final = static_cast<int64_t>(value);
  std::string text = "value = " + (integer ? std::to_string(result.first) : numberText(value));
  if (!shape.empty() || random.chance(0.1))
    text += " shape = " + textOf(shape);
  if (element != Element::F32 || random.chance(0.1))
    text += std::string(" dtype = ") + wordOf(element);
  return emit("constant", {}, text, result);
}

Value Writer::iota(const Shape &shape, int64_t axis, Element element) {
  const Dim &n = shape[static_cast<size_t>(axis)];
  Value result{
      .shape = shape, .element = element, .size = 0.5 * static_cast<double>(n.size), .low = 0.0};
  result.final = n.most - 1;
  result.repeatable = true;
  std::string text = "shape = " + textOf(shape) + " axis = " + std::to_string(axis);
  if (element != Element::I32 || random.chance(0.2))
    text += std::string(" dtype = ") + wordOf(element);
  if (random.chance(0.1)) // which only programs that read on can tell
    text += " positions";
  return emit("iota", {}, text, result);
}

Value Writer::parameter(const Shape &shape, Element element) {
  // Where the `use` stands: what may be left out reads nothing that is only read there.
  size_t where = blocks.size() - 1;
  while (blocks[where].isWhen)
    --where;
  if (blocks[where].scan > 0 && !blocks[where].isolated && where > 0 &&
      blocks[where - 1].scan < blocks[where].scan && random.chance(0.5))
    --where;
  while (blocks[where].isWhen)
    --where;
  Block &home = blocks[where];

  auto use = [&](const std::string &name, const std::string &variable, Value value) {
    value.name = name;
    home.text += std::string(4 + 2 * where, ' ') + "%" + name + " = hydra.use @" + variable + "\n";
    ++lines;
    home.values.push_back(value);
    return value;
  };
  Value value{.shape = shape, .element = element, .repeatable = true};
  std::vector<Declared> same;
  for (const Declared &d : parameters)
    if (d.shape == shape && d.element == element)
      same.push_back(d);
  if (!same.empty() && random.chance(0.15)) {
    const Declared d = random.pick(same);
    value.size = d.size;
    value.distinct = d.distinct;
    return use(fresh("v"), d.name, value);
  }
  const std::string name = fresh("p");
  struct Start {
    std::string text;
    double size;
    bool distinct;
  };
  const std::vector<Start> starts = {
      {"normal(1.0)", 1.0, true},
      {"normal(1.0)", 1.0, true},
      {"normal(1.0)", 1.0, true},
      {"normal(1.0)", 1.0, true},
      {"normal(1.0)", 1.0, true},
      {"normal(0.5)", 0.5, true},
      {"normal(0.5)", 0.5, true},
      {"uniform(1.0)", 0.6, true},
      {"uniform(0.3)", 0.2, true},
      {"trunc_normal(0.5, 2.0)", 0.5, true},
      {"ones", 1.0, false},
      {"zeros", 0.0, false},
      {"constant(0.5)", 0.5, false},
      {"constant(-1.0)", 1.0, false},
      {"shuffle((index + 1) / " + std::to_string(elementsOf(shape)) + ".0)", 0.6, true}};
  const Start start = random.pick(starts);
  value.size = start.size;
  value.distinct = start.distinct || elementsOf(shape) == 1;
  const bool perLayer = home.stack >= 0 && random.chance(0.75);
  std::string text = "hydra.param @" + name + " " + textOf(shape);
  if (element != Element::F32)
    text += std::string(" ") + wordOf(element);
  text += " init = " +
          (perLayer && random.chance(0.2) ? std::string("normal(1.0 / (layer + 1))") : start.text);
  if (!matrixGroups.empty() && shape.size() == 2 && random.chance(0.3))
    text += " group = @" + random.pick(matrixGroups);
  else if (!groups.empty() && random.chance(0.4))
    text += " group = @" + random.pick(groups);
  if (mayFreeze && random.chance(0.15))
    text += " frozen";
  if (perLayer)
    stacks[static_cast<size_t>(home.stack)].lines += "    " + text + "\n";
  else {
    variableLines += "  " + text + "\n";
    parameters.push_back({name, shape, element, value.size, value.distinct});
  }
  return use(name, name, value);
}

bool Writer::canHaveInputs() const {
  return std::none_of(blocks.begin(), blocks.end(), [](const Block &b) { return b.isolated; });
}

Value Writer::input(const Shape &shape, Element element) {
  Value value{.name = fresh("x"), .shape = shape, .element = element};
  value.repeatable = value.distinct = true;
  arguments.push_back("%" + value.name + ": " + textOf(shape) + " " + wordOf(element));
  blocks.front().values.push_back(value);
  return value;
}

//===-- Values of a shape -------------------------------------------------------------------===//

Value Writer::make(const Shape &shape, Element element, unsigned depth) {
  auto fits = [&](const Value &v) { return v.shape == shape && v.element == element; };
  if (random.chance(depth ? 0.25 : 0.45))
    if (std::optional<Value> v = find(fits))
      return *v;
  const bool writable = canWrite(shape);
  if (!writable) { // nothing new can have this shape, but a number can be repeated to it by
                   // addition
    if (std::optional<Value> v = find(fits))
      return *v;
    if (std::optional<Value> like =
            find([&](const Value &v) { return v.shape == shape && v.isFloat(); }))
      return cast(*like, element);
  }
  if (element == Element::I32)
    return shape.empty() || random.chance(0.4)
               ? constant(static_cast<double>(random.below(3)), shape, element)
               : iota(shape, random.below(static_cast<int64_t>(shape.size())));
  if (element == Element::I1) {
    const Value a = make(shape, Element::F32, depth + 1), limit = constant(random.uniform());
    return compare(a, limit, "lt");
  }
  if (element == Element::Narrow && (random.chance(0.7) || !allNumbers(shape)))
    return cast(make(shape, Element::F32, depth + 1), element);
  const double draw = 0.5 * (random.uniform() + 1.0);
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (draw < 0.08)
    return constant(random.pick<double>({1.0, 0.0, -1.0, 0.5, 2.0, random.uniform()}), shape,
                    element);
  if (!allNumbers(shape) || (draw < 0.25 && rank > 0)) { // repeated
    Shape narrow(shape.begin() + (depth < 2 ? random.below(rank) : 0), shape.end());
    for (Dim &d : narrow)
      if (!d.isNumber() || random.chance(0.4))
        d = Dim(1);
    return broadcast(make(narrow, element, depth + 1), shape);
  }
  if (depth < 2 && draw < 0.33 && rank >= 2) { // transposed
    std::vector<int64_t> order(shape.size()), inverse(shape.size());
    for (int64_t i = 0; i < rank; ++i) {
      order[static_cast<size_t>(i)] = i;
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.below(i + 1))]);
    }
    Shape from = shape;
    for (size_t i = 0; i < shape.size(); ++i)
      from[static_cast<size_t>(order[i])] = shape[i];
    return transpose(make(from, element, depth + 1), order);
  }
  if (depth < 2 && draw < 0.40 && rank >= 1) { // part of something larger
    Shape from = shape;
    const size_t axis = static_cast<size_t>(random.below(rank));
    const int64_t before = random.below(3), after = random.below(3);
    from[axis] = Dim(shape[axis].size + before + after);
    return slice(make(from, element, depth + 1), axis, before, shape[axis].size);
  }
  if (depth < 2 && draw < 0.46 && rank >= 1) // rows of one long one
    return reshape(make({Dim(elementsOf(shape))}, element, depth + 1), shape);
  if (draw < 0.58 && canHaveInputs())
    return input(shape, element);
  return parameter(shape, element);
}

//===-- Plain operations --------------------------------------------------------------------===//

Value Writer::unary(const std::string &op, const Value &x, double size) {
  Value result{.shape = x.shape, .element = x.element, .size = size};
  result.repeatable = x.repeatable;
  result.distinct = x.distinct;
  return emit(op, {x}, "", result);
}

Value Writer::binary(const std::string &op, const Value &a, const Value &b, double size) {
  Value result{.shape = *commonShape(a.shape, b.shape), .element = a.element, .size = size};
  result.repeatable = a.repeatable && b.repeatable;
  const bool picks = op == "max" || op == "min", cancels = op == "sub" || op == "div";
  result.distinct =
      !picks && !(cancels && a.name == b.name) &&
      ((a.distinct && a.shape == result.shape) || (b.distinct && b.shape == result.shape));
  if (a.element == Element::I32) {
    auto bounds = [&](auto f) {
      const int64_t ends[] = {f(a.first, b.first), f(a.first, b.final), f(a.final, b.first),
                              f(a.final, b.final)};
      result.first = *std::min_element(ends, ends + 4);
      result.final = *std::max_element(ends, ends + 4);
    };
    if (op == "add")
      bounds([](int64_t x, int64_t y) { return x + y; });
    else if (op == "sub")
      bounds([](int64_t x, int64_t y) { return x - y; });
    else if (op == "mul")
      bounds([](int64_t x, int64_t y) { return x * y; });
    else if (op == "max")
      bounds([](int64_t x, int64_t y) { return std::max(x, y); });
    else
      bounds([](int64_t x, int64_t y) { return std::min(x, y); });
    constexpr int64_t least = std::numeric_limits<int32_t>::min(),
                      most = std::numeric_limits<int32_t>::max();
    if (result.first < least || result.final > most) { // it wraps around
      result.first = least;
      result.final = most;
    }
    result.size = static_cast<double>(std::max(std::abs(result.first), std::abs(result.final)));
  }
  return emit(op, {a, b}, "", result);
}

Value Writer::compare(const Value &a, const Value &b, const std::string &is) {
  Value result{.shape = *commonShape(a.shape, b.shape), .element = Element::I1, .low = 0.0};
  result.repeatable = true;
  result.final = 1;
  return emit("compare", {a, b}, "is = \"" + is + "\"", result);
}

Value Writer::cast(const Value &x, Element to) {
  Value result = x;
  result.element = to;
  if (to == Element::Narrow) { // what differs little may be equal now
    result.distinct = x.count() == 1;
    result.repeatable = x.repeatable;
  }
  if (to == Element::I32 && x.isFloat())
    result.first = -(result.final = static_cast<int64_t>(10.0 * x.size) + 10);
  return emit("cast", {x}, std::string("to = ") + wordOf(to), result);
}

Value Writer::reshape(const Value &x, const Shape &shape) {
  Value result = x;
  result.shape = shape;
  return emit("reshape", {x}, "shape = " + textOf(shape), result);
}

Value Writer::transpose(const Value &x, const std::vector<int64_t> &order) {
  Value result = x;
  for (size_t i = 0; i < order.size(); ++i)
    result.shape[i] = x.shape[static_cast<size_t>(order[i])];
  return emit("transpose", {x}, listText("order", order), result);
}

Value Writer::broadcast(const Value &x, const Shape &shape) {
  Value result = x;
  result.shape = shape;
  result.distinct = x.distinct && x.count() == elementsOf(shape);
  return emit("broadcast", {x}, "shape = " + textOf(shape), result);
}

Value Writer::slice(const Value &x, size_t axis, int64_t start, int64_t size) {
  Value result = x;
  result.shape[axis] = Dim(size);
  return emit("slice", {x},
              "axis = " + std::to_string(axis) + " start = " + std::to_string(start) +
                  " size = " + std::to_string(size),
              result);
}

Value Writer::concat(const std::vector<Value> &parts, size_t axis) {
  Value result = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    const Value &p = parts[i];
    result.shape[axis] = sum(result.shape[axis], p.shape[axis]);
    result.size = std::max(result.size, p.size);
    result.low = std::min(result.low, p.low);
    result.first = std::min(result.first, p.first);
    result.final = std::max(result.final, p.final);
    result.repeatable = result.repeatable && p.repeatable;
    result.distinct = false;
  }
  return emit("concat", parts, "axis = " + std::to_string(axis), result);
}

Value Writer::reduce(const std::string &op, const Value &x, const std::vector<bool> &mask,
                     bool keep) {
  Value result{.element = x.element, .size = x.size};
  std::vector<int64_t> axes;
  int64_t reduced = 1;
  const int64_t rank = static_cast<int64_t>(mask.size());
  for (int64_t i = 0; i < rank; ++i) {
    const Dim &d = x.shape[static_cast<size_t>(i)];
    if (!mask[static_cast<size_t>(i)]) {
      result.shape.push_back(d);
      continue;
    }
    reduced *= d.size;
    axes.push_back(random.chance(0.7) ? i : i - rank);
    if (keep)
      result.shape.push_back(Dim(1));
  }
  if (axes.size() > 1 && random.chance(0.15))
    std::reverse(axes.begin(), axes.end());
  if (op == "sum")
    result.size *=
        x.distinct ? 1.5 * std::sqrt(static_cast<double>(reduced)) : static_cast<double>(reduced);
  result.distinct = x.distinct;
  if (op == "reduce_max") {
    result.low = x.low;
    result.repeatable = x.repeatable;
  }
  return emit(op, {x}, listText("axes", axes) + (keep ? " keep" : ""), result);
}

Value Writer::linear(const Value &x, const Value &w, const std::optional<Value> &bias) {
  Value result{.shape = x.shape, .element = x.element};
  result.shape.back() = w.shape[0];
  const double terms = static_cast<double>(x.shape.back().size);
  result.size = x.size * w.size * (w.distinct ? std::sqrt(terms) : terms);
  result.distinct = x.distinct && w.distinct && x.name != w.name;
  std::vector<Value> operands = {x, w};
  if (bias)
    operands.push_back(*bias);
  std::string attributes;
  if (x.element == Element::Narrow && random.chance(0.3)) {
    attributes = "dtype = f32";
    result.element = Element::F32;
  } else if (x.element == Element::F32 && random.chance(0.06)) {
    attributes = random.pick<std::string>({"compute = f32", "compute = tf32"});
  }
  return emit("linear", operands, attributes, result);
}

Value Writer::tame(const Value &x) {
  if (x.size <= 4.0 || !x.isFloat())
    return x;
  if (random.chance(0.4))
    return unary("tanh", x, 1.0);
  if (x.element == Element::Narrow)
    return unary("sin", x, 0.7);
  Value result = binary("mul", x, constant(std::max(0.001, 1.0 / x.size)), 1.0);
  return result;
}

Value Writer::toScalar(const Value &x) {
  if (x.rank() == 0)
    return x;
  const std::vector<bool> all(x.rank(), true);
  switch (random.below(6)) {
  case 0: { // one axis after the other
    Value v = x;
    while (v.rank() > 0) {
      std::vector<bool> mask(v.rank(), false);
      mask[static_cast<size_t>(random.below(static_cast<int64_t>(v.rank())))] = true;
      v = tame(reduce(random.chance(0.5) ? "sum" : "mean", v, mask, false));
    }
    return v;
  }
  case 1: // with all dimensions left as 1
    return reshape(reduce(random.chance(0.5) ? "sum" : "mean", x, all, true), {});
  case 2:
    if (x.hasClearOrder())
      return reduce("reduce_max", x, all, false);
    [[fallthrough]];
  case 3:
    return reduce("mean", x, all, false);
  default:
    return reduce("sum", x, all, false);
  }
}

} // namespace hydra::test::hostile
