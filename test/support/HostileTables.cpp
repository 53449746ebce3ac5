// Random lookups, losses and routing: operations that whole numbers and truth values steer.
#include "test/support/HostileWriter.h"

#include <algorithm>
#include <cmath>

namespace hydra::test::hostile {

/// Whole numbers from 0 to rows - 1.
std::optional<Value> Writer::wideTokens(int64_t rows) {
  return find([&](const Value &v) {
    return v.element == Element::I32 && v.first >= 0 && v.final < rows && v.rank() <= 3;
  });
}

bool Writer::embeddings() {
  std::optional<Value> tokens = wideTokens(100);
  if (random.chance(0.12)) { // a state of whole numbers in a random order
    const Dim n = dim();
    const std::string name = fresh("order");
    variableLines +=
        "  hydra.state @" + name + " " + textOf(Shape{n}) + " i32 init = shuffle(index)\n";
    Value order{.name = name, .shape = {n}, .element = Element::I32};
    order.final = n.size - 1;
    order.repeatable = order.distinct = true;
    line("%" + name + " = hydra.use @" + name);
    remember(order);
    tokens = order;
  } else if (!tokens || random.chance(0.3)) {
    const Shape shape = randomShape(0, 2);
    if (shape.empty())
      tokens = constant(static_cast<double>(random.below(4)), {}, Element::I32);
    else
      tokens = iota(shape, random.below(static_cast<int64_t>(shape.size())));
  }
  const Dim width = dim();
  const int64_t rows = tokens->final + random.pick<int64_t>({1, 1, 2, 5});
  if (rows * width.size > kMostElements || tokens->count() * width.size > kMostElements)
    return false;
  std::optional<Value> table;
  if (random.chance(0.5))
    table = find([&](const Value &v) {
      return v.isFloat() && v.rank() == 2 && v.shape[0].least() > tokens->final &&
             tokens->count() * v.shape[1].size <= kMostElements;
    });
  if (!table)
    table = make({Dim(rows), width});
  Value result = *table;
  result.shape = tokens->shape;
  result.shape.push_back(table->shape[1]);
  result.distinct = false;
  emit("embedding", {*tokens, *table}, "", result);
  return true;
}

Value Writer::labels(const Shape &shape, int64_t classes) {
  std::optional<Value> found = find([&](const Value &v) {
    return v.element == Element::I32 && v.shape == shape && v.first >= 0 && v.final < classes;
  });
  if (!found || random.chance(0.2)) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i].most <= classes)
        axes.push_back(static_cast<int64_t>(i));
    found = axes.empty() || random.chance(0.2)
                ? constant(static_cast<double>(random.below(classes)), shape, Element::I32)
                : iota(shape, random.pick(axes));
  }
  if (shape.empty() || random.chance(0.6))
    return *found;
  // Some rows do not count; perhaps none does.
  const int64_t axis = random.below(static_cast<int64_t>(shape.size()));
  const int64_t limit = random.below(shape[static_cast<size_t>(axis)].size + 1);
  const Value chosen =
      compare(iota(shape, axis), constant(static_cast<double>(limit), {}, Element::I32),
              random.pick<std::string>({"lt", "ge", "ne"}));
  Value result{.shape = shape, .element = Element::I32};
  result.first = -100;
  result.final = found->final;
  return emit("select", {chosen, *found, constant(-100.0, {}, Element::I32)}, "", result);
}

bool Writer::losses() {
  std::optional<Value> x = find([&](const Value &v) {
    return v.isFloat() && v.rank() >= 1 && v.rank() <= mostRank && canWrite(v.shape);
  });
  if (!x)
    return false;
  x = tame(*x);
  Shape rows(x->shape.begin(), x->shape.end() - 1);
  if (random.chance(0.5)) {
    if (!x->shape.back().isNumber())
      return false;
    const Value target = labels(rows, x->shape.back().size);
    Value result{.element = Element::F32, .size = 2.0};
    result.distinct = true;
    emit("cross_entropy", {*x, target}, "", result);
    return true;
  }
  const Dim inner = x->shape.back();
  std::optional<Value> w = find([&](const Value &v) { // a tied table, or x itself
    return v.rank() == 2 && v.element == x->element && v.shape[1] == inner && v.shape[0].isNumber();
  });
  if (!w || random.chance(0.5)) {
    const Dim classes = dim();
    if (classes.size * inner.size > kMostElements)
      return false;
    w = make({classes, inner}, x->element);
  }
  w = tame(*w);
  const Value target = labels(rows, w->shape[0].size);
  Value result{.element = Element::F32, .size = 2.0};
  result.distinct = true;
  if (random.chance(0.65)) {
    emit("linear_cross_entropy", {*x, *w, target}, "", result);
    return true;
  }
  // The losses of rows have no derivative: they are used detached alone.
  result.name = fresh("v");
  Value each = result;
  each.shape = rows;
  each.name = fresh("v");
  line("%" + result.name + ", %" + each.name + " = hydra.linear_cross_entropy " +
       nameList({*x, *w, target}) + " rows");
  remember(result);
  each.distinct = false;
  if (random.chance(0.8)) {
    each.name = unary("detach", each, 2.0).name;
    blocks.back().values.back().distinct = false;
  }
  return true;
}

bool Writer::choosing() {
  std::optional<Value> scores = find([](const Value &v) {
    return v.element == Element::F32 && v.rank() >= 1 && v.hasClearOrder();
  });
  if (!scores || random.chance(0.4)) { // whole numbers: many are equal
    const Shape shape = randomShape(1, 3);
    const Value i = iota(shape, random.below(static_cast<int64_t>(shape.size())));
    scores = cast(binary(random.chance(0.5) ? "min" : "mul", i,
                         constant(static_cast<double>(random.below(4)), {}, Element::I32), 0.0),
                  Element::F32);
  }
  const int64_t most = scores->shape.back().least();
  Value result{.shape = scores->shape, .element = Element::I1};
  result.final = 1;
  result.repeatable = true;
  const Value chosen =
      emit("top_k", {*scores},
           "k = " + std::to_string(random.chance(0.3) ? most : random.between(1, most)), result);
  if (random.chance(0.7)) {
    const Value weights = cast(chosen, Element::F32);
    if (random.chance(0.7))
      tame(binary("mul", weights, *scores, scores->size));
  }
  return true;
}

/// How many numbers have which exponent: small whole ones, maybe times a power of two, which no
/// rounding moves over a limit.
bool Writer::counting() {
  const auto numbers = [&] {
    const Shape shape = randomShape(1, 3);
    const Value i = iota(shape, random.below(static_cast<int64_t>(shape.size())));
    const Value most = constant(static_cast<double>(random.below(100)), {}, Element::I32);
    return cast(binary("min", i, most, 0.0), Element::F32);
  };
  std::vector<Value> operands;
  const bool scaled = random.chance(0.4);
  if (scaled)
    operands.push_back(constant(std::ldexp(1.0, static_cast<int>(random.between(-3, 3)))));
  const int64_t count = random.between(1, 8);
  int64_t elements = 0;
  for (int64_t n = random.between(1, 3); n > 0; --n) {
    operands.push_back(numbers());
    int64_t most = 1;
    for (const Dim &d : operands.back().shape)
      most *= d.most;
    elements += most;
  }
  Value result{.shape = {Dim(count)}, .element = Element::I32};
  result.final = elements;
  result.repeatable = true;
  const Value counts = emit("count_exponents", operands,
                            "first = " + std::to_string(random.between(-4, 4)) +
                                " count = " + std::to_string(count) + (scaled ? " scaled" : ""),
                            result);
  Value whole = cast(counts, Element::F32);
  if (random.chance(0.7))
    tame(whole);
  return true;
}

/// Some rows are gathered, worked on and brought back.
bool Writer::routing() {
  std::optional<Value> x = find([](const Value &v) { return v.isFloat() && v.rank() == 2; });
  if (!x) {
    x = anyOfRank(3, 4);
    if (!x || !canWrite(x->shape))
      return false;
    Dim all(1);
    for (size_t i = 0; i + 1 < x->rank(); ++i)
      all = product(all, x->shape[i]);
    x = reshape(*x, {all, x->shape.back()});
  }
  const Shape rows = {x->shape[0]};
  if (!canWrite(rows))
    return false;
  std::optional<Value> mask =
      find([&](const Value &v) { return v.element == Element::I1 && v.shape == rows; });
  if (!mask || random.chance(0.5)) {
    const Value i = iota(rows, 0);
    mask =
        compare(i, constant(static_cast<double>(random.below(rows[0].size + 2)), {}, Element::I32),
                random.pick<std::string>({"lt", "ge", "eq", "ne"}));
  }
  Value index{.name = fresh("v"), .shape = rows, .element = Element::I32};
  index.first = -1;
  index.final = rows[0].most - 1;
  index.repeatable = true;
  Value place = index, total = index;
  place.name = fresh("v");
  total.name = fresh("v");
  total.shape = {};
  total.first = 0;
  total.final = rows[0].most;
  line("%" + index.name + ", %" + place.name + ", %" + total.name + " = hydra.compact %" +
       mask->name);
  remember(index);
  remember(place);
  remember(total);
  auto take = [&](const Value &from, const Value &by, const Value &back) {
    Value result = from;
    result.low = std::min(result.low, 0.0);
    result.distinct = false;
    return emit("take_rows", {from, by, back}, "", result);
  };
  Value y = take(*x, index, place);
  if (random.chance(0.3))
    tame(cast(total, Element::F32));
  if (random.chance(0.7)) {
    const Dim width = dim();
    if (y.shape[1].isNumber() && y.count() / y.shape[1].size * width.size <= kMostElements &&
        y.shape[1].size * width.size <= kMostElements) {
      std::optional<Value> bias; // with it, what is no row is not zero any more
      if (random.chance(0.4))
        bias = make({width}, y.element);
      y = linear(tame(y), make({width, y.shape[1]}, y.element), bias);
      y = tame(Value(y.element == x->element ? y : cast(y, x->element)));
    }
    if (random.chance(0.4))
      y = unary(random.pick<std::string>({"tanh", "cos", "sigmoid", "gelu"}), y, 0.8);
    if (random.chance(0.3))
      y = softmaxOf(y);
  }
  if (random.chance(0.3)) // all rows are looked at
    tame(reduce(random.chance(0.5) ? "sum" : "mean", y, {true, random.chance(0.5)}, false));
  if (random.chance(0.6))
    take(y, place, index);
  return true;
}

/// Rows are sorted by groups, multiplied by a matrix for each, and brought back.
bool Writer::grouping() {
  std::optional<Value> x = find([](const Value &v) { return v.isFloat() && v.rank() == 2; });
  if (!x || random.chance(0.3))
    if (const std::optional<Value> rows = anyOfRank(3, 3); rows && canWrite(rows->shape))
      x = reshape(*rows, {product(rows->shape[0], rows->shape[1]), rows->shape[2]});
  if (!x || !canWrite(x->shape) || !x->shape[1].isNumber())
    return false;
  const Dim rows = x->shape[0];
  const int64_t groups = random.between(1, 5), k = random.between(1, groups);
  const Dim sorted = product(Dim(k), rows), width = dim();
  if (sorted.size * std::max(x->shape[1].size, width.size) > kMostElements ||
      groups * x->shape[1].size * width.size > kMostElements)
    return false;
  const Shape pairs = {rows, Dim(groups)};
  const Value number = binary(random.pick<std::string>({"add", "mul", "min", "max"}),
                              iota(pairs, 0), iota(pairs, 1), 0.0);
  const Value mask =
      compare(number, constant(static_cast<double>(random.below(6)), {}, Element::I32),
              random.pick<std::string>({"lt", "ge", "eq", "ne"}));
  const auto numbers = [&](const Shape &shape, int64_t first, int64_t final) {
    Value v{.name = fresh("v"), .shape = shape, .element = Element::I32};
    v.first = first;
    v.final = final;
    v.repeatable = true;
    return v;
  };
  const Value index = numbers({sorted}, -1, rows.most - 1),
              group = numbers({sorted}, 0, groups - 1),
              place = numbers({rows, Dim(k)}, -1, sorted.most - 1),
              offsets = numbers({Dim(groups + 1)}, 0, sorted.most);
  line("%" + index.name + ", %" + group.name + ", %" + place.name + ", %" + offsets.name +
       " = hydra.route %" + mask.name + " k = " + std::to_string(k));
  for (const Value &v : {index, group, place, offsets})
    remember(v);
  const auto take = [&](const Value &from, const Value &by, const Value &back, const Dim &count) {
    Value result = from;
    result.shape[0] = count;
    result.low = std::min(result.low, 0.0);
    result.distinct = false;
    return emit("take_rows", {from, by, back}, "", result);
  };
  Value y = tame(take(*x, index, place, sorted));
  const bool transposed = random.chance(0.3);
  const Dim inner = y.shape[1];
  const Shape matrices = {Dim(groups), transposed ? inner : width, transposed ? width : inner};
  const Value w =
      random.chance(0.6) ? parameter(matrices, y.element) : tame(make(matrices, y.element));
  std::string attributes = transposed ? "transposed" : "";
  if (y.element == Element::F32 && random.chance(0.1))
    attributes +=
        (transposed ? " " : "") + random.pick<std::string>({"compute = f32", "compute = tf32"});
  Value product{.shape = {sorted, width}, .element = y.element};
  product.size = y.size * w.size * std::sqrt(static_cast<double>(inner.size));
  y = tame(emit("grouped_linear", {y, w, offsets}, attributes, product));
  if (random.chance(0.4))
    y = unary(random.pick<std::string>({"tanh", "cos", "silu"}), y, 0.8);
  if (random.chance(0.3)) { // what is summed for each group of this and other sorted rows
    Value outer{.shape = {Dim(groups), width, inner}, .element = y.element};
    if (outer.count() <= kMostElements) {
      const Value other = tame(take(*x, index, place, sorted));
      if (other.element == y.element) {
        outer.size = y.size * other.size * std::sqrt(static_cast<double>(rows.size));
        tame(emit("grouped_outer", {y, other, offsets}, "", outer));
      }
    }
  }
  if (random.chance(0.8))
    take(y, place, index, rows);
  return true;
}

} // namespace hydra::test::hostile
