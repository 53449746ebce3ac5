// Random elementwise operations: arithmetic, choices, casts, constants, with broadcasts everywhere.
#include "test/support/HostileWriter.h"

#include <algorithm>
#include <cmath>

namespace hydra::test::hostile {

bool Writer::unaries() {
  Value x = any();
  static const std::vector<std::string> names = {
      "neg",  "exp",  "log", "sqrt",   "rsqrt", "sin",     "cos", "tanh",
      "silu", "gelu", "erf", "detach", "tanh",  "sigmoid", "sin", "exp"};
  const std::string name = random.pick(names);
  if (name == "log" || name == "sqrt" || name == "rsqrt") {
    if (x.low < 0.2) { // far enough from zero
      x = random.chance(0.5) ? unary("sigmoid", x, 0.5) : binary("mul", x, x, x.size * x.size);
      const Value offset = x.element == Element::F32 ? constant(0.5) : constant(0.5, {}, x.element);
      x = binary("add", x, offset, x.size + 0.5);
      blocks.back().values.back().low = 0.5;
    }
    unary(name, x, name == "rsqrt" ? 1.0 : std::sqrt(x.size) + 0.3);
    return true;
  }
  x = tame(x);
  if (name == "detach" && x.rank() > 0 && random.chance(0.5)) { // several become zero
    Value kept{.shape = x.shape, .element = x.element, .size = 2.0 * x.size};
    kept.repeatable = x.repeatable;
    emit("dropout", {x}, "p = " + random.pick<std::string>({"0.0", "0.25", "0.5"}), kept);
    return true;
  }
  if (name == "exp" && x.size > 1.2)
    x = unary(random.chance(0.5) ? "tanh" : "sin", x, 0.8);
  double size = x.size;
  if (name == "exp")
    size = 1.0 + x.size * x.size;
  else if (name == "sin" || name == "tanh")
    size = std::min(size, 0.8);
  else if (name == "erf")
    size = std::min(1.2 * size, 0.9);
  else if (name == "cos" || name == "sigmoid")
    size = 0.8;
  Value y = unary(name, x, size);
  if (name == "exp" || name == "sigmoid")
    blocks.back().values.back().low = 0.0;
  if (name == "cos" || name == "silu" || name == "gelu") // even, or not monotonous
    blocks.back().values.back().distinct = y.distinct && x.count() <= 64;
  if (name == "neg" && random.chance(0.3))
    unary("neg", y, size);
  return true;
}

/// Something that `a` broadcasts with.
std::optional<Value> Writer::other(const Value &a) {
  const double draw = 0.5 * (random.uniform() + 1.0);
  if (draw < 0.08)
    return a;
  if (draw < 0.45 || a.rank() == 0 || !canWrite(a.shape))
    if (std::optional<Value> b = find([&](const Value &v) {
          std::optional<Shape> shape = commonShape(a.shape, v.shape);
          return v.element == a.element && shape && elementsOf(*shape) <= kMostElements;
        }))
      return b;
  if (draw < 0.55)
    return constant(random.pick<double>({0.0, 1.0, -1.0, 2.0, random.uniform()}), {}, a.element);
  if (!canWrite(a.shape))
    return a;
  Shape shape = a.shape;
  if (a.rank() > 0 && random.chance(0.6)) // trailing dimensions, some of them 1
    shape.erase(shape.begin(), shape.begin() + random.below(static_cast<int64_t>(a.rank()) + 1));
  for (Dim &d : shape)
    if (random.chance(0.3))
      d = Dim(1);
    else if (d.isOne() && random.chance(0.4)) // the other side is repeated
      d = dim();
  while (a.rank() + 1 < 5 && shape.size() == a.rank() && random.chance(0.2))
    shape.insert(shape.begin(), dim());
  std::optional<Shape> common = commonShape(a.shape, shape);
  if (!common || elementsOf(*common) > kMostElements)
    return make(a.shape, a.element);
  return make(shape, a.element);
}

bool Writer::arithmetic() {
  Value a = any();
  std::optional<Value> b = other(a);
  if (!b)
    return false;
  static const std::vector<std::string> names = {"add", "sub", "mul", "div",
                                                 "max", "min", "add", "mul"};
  const std::string name = random.pick(names);
  if ((name == "max" || name == "min") && a.name != b->name &&
      !(a.repeatable && b->repeatable)) { // ties would depend on rounding
    b = constant(random.uniform(), {}, a.element);
  }
  a = tame(a);
  Value c = tame(*b);
  if (random.chance(0.5))
    std::swap(a, c);
  if (name == "div") {
    if (c.low < 0.2 && !(c.size >= 0.5 && c.rank() == 0 && c.low == c.size)) {
      c = unary(random.chance(0.5) ? "sigmoid" : "cos", c, 0.7);
      c = binary("add", c, constant(1.5, {}, c.element), 1.7);
      blocks.back().values.back().low = 0.5;
    }
    tame(binary("div", a, c, 2.0 * a.size));
    return true;
  }
  tame(binary(name, a, c,
              name == "mul"   ? a.size * c.size
              : name == "add" ? a.size + c.size
              : name == "sub" ? a.size + c.size
                              : std::max(a.size, c.size)));
  return true;
}

/// A constant or an index as a value of its own, that is used like any other.
bool Writer::constants() {
  const Shape shape = randomShape(0, mostRank);
  if (!shape.empty() && random.chance(0.4)) {
    const int64_t axis = random.below(static_cast<int64_t>(shape.size()));
    const Value i = iota(shape, axis, random.chance(0.5) ? Element::F32 : Element::I32);
    if (i.element == Element::I32)
      cast(i, Element::F32);
    return true;
  }
  constant(random.pick<double>({0.0, 1.0, -1.0, 0.5, 3.0, random.uniform()}), shape,
           mayRound && random.chance(0.3) ? Element::Narrow : Element::F32);
  return true;
}

/// Arithmetic of whole numbers, which then count as numbers with many ties.
bool Writer::integers() {
  std::optional<Value> a = find([](const Value &v) {
    return v.element == Element::I32 && std::abs(v.final) < 1000 && std::abs(v.first) < 1000;
  });
  if (!a || random.chance(0.4)) {
    const Shape shape = randomShape(1, 3);
    a = iota(shape, random.below(static_cast<int64_t>(shape.size())));
  }
  std::optional<Value> b = find([&](const Value &v) {
    std::optional<Shape> shape = commonShape(a->shape, v.shape);
    return v.element == Element::I32 && std::abs(v.final) < 1000 && std::abs(v.first) < 1000 &&
           shape && elementsOf(*shape) <= kMostElements;
  });
  if (!b || random.chance(0.6)) {
    constexpr double most = std::numeric_limits<int32_t>::max(); // beyond it they wrap around
    b = constant(random.chance(0.4) ? random.pick<double>({most, -most - 1.0, 2.0e9, 123456789.0})
                                    : static_cast<double>(random.between(-2, 5)),
                 {}, Element::I32);
  }
  const std::string name = random.pick<std::string>({"add", "sub", "mul", "max", "min"});
  const Value y = random.chance(0.5) ? binary(name, *a, *b, 0.0) : binary(name, *b, *a, 0.0);
  if (random.chance(0.7))
    tame(cast(y, Element::F32));
  return true;
}

bool Writer::picking() {
  Value a = any();
  static const std::vector<std::string> predicates = {"lt", "le", "gt", "ge", "eq", "ne"};
  std::optional<Value> condition;
  std::optional<Value> b = other(a);
  if (!b)
    return false;
  const Shape common = *commonShape(a.shape, b->shape);
  const double draw = 0.5 * (random.uniform() + 1.0);
  if (draw < 0.3)
    condition = find([&](const Value &v) {
      std::optional<Shape> shape = commonShape(common, v.shape);
      return v.element == Element::I1 && shape && elementsOf(*shape) <= kMostElements;
    });
  if (!condition && draw < 0.55 && !common.empty() && canWrite(common)) {
    // A mask over trailing dimensions, whole or of size 1.
    Shape shape(common.begin() + random.below(static_cast<int64_t>(common.size())), common.end());
    const int64_t axis = random.below(static_cast<int64_t>(shape.size()));
    Value limit =
        constant(static_cast<double>(random.below(shape[static_cast<size_t>(axis)].size + 1)), {},
                 Element::I32);
    if (shape.size() > 1 && random.chance(0.5))
      limit = iota(shape, random.below(static_cast<int64_t>(shape.size())));
    condition = compare(iota(shape, axis), limit, random.pick(predicates));
  }
  if (!condition && a.repeatable && b->repeatable)
    condition = compare(a, *b, random.pick(predicates));
  if (!condition && a.count() <= 512)
    condition = compare(a, constant(random.uniform(), {}, a.element), "lt");
  if (!condition)
    return false;
  Value result{.shape = *commonShape(common, condition->shape),
               .element = a.element,
               .size = std::max(a.size, b->size),
               .low = std::min(a.low, b->low)};
  if (elementsOf(result.shape) > kMostElements)
    return false;
  result.repeatable = a.repeatable && b->repeatable && condition->repeatable;
  if (random.chance(0.5))
    std::swap(a, *b);
  tame(emit("select", {*condition, a, *b}, "", result));
  return true;
}

/// Truth values that are compared, chosen, and counted.
bool Writer::truths() {
  std::optional<Value> t = find([](const Value &v) { return v.element == Element::I1; });
  if (!t || random.chance(0.3)) {
    const Value a = any();
    if (a.count() > 512 && !a.repeatable)
      return false;
    t = compare(a, constant(random.uniform(), {}, a.element),
                random.pick<std::string>({"lt", "gt", "le", "ge"}));
  }
  if (random.chance(0.3)) { // equal where both hold, or neither does
    const std::optional<Value> u =
        find([&](const Value &v) { return v.element == Element::I1 && v.shape == t->shape; });
    t = compare(*t, *u, random.pick<std::string>({"eq", "ne"}));
  }
  if (random.chance(0.2)) {
    Value result = *t;
    t = emit("select", {*t, constant(1.0, {}, Element::I1), *t}, "", result);
  }
  const Element to =
      random.pick<Element>({Element::F32, Element::F32, Element::I32, Element::Narrow});
  cast(*t, to == Element::Narrow && !mayRound ? Element::F32 : to);
  return true;
}

bool Writer::casting() {
  if (!mayRound || random.chance(0.4)) {
    std::optional<Value> x = find([](const Value &v) {
      return v.element == Element::I32 || (v.element == Element::F32 && v.repeatable);
    });
    if (!x)
      return false;
    if (x->element == Element::I32)
      tame(cast(*x, Element::F32));
    else // no change at all
      cast(*x, Element::F32);
    return true;
  }
  Value y = cast(any(), Element::Narrow);
  if (random.chance(0.4))
    y = unary("tanh", y, std::min(1.0, y.size));
  if (random.chance(0.6))
    cast(y, Element::F32);
  return true;
}

} // namespace hydra::test::hostile
