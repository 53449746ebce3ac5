// What passes look for, written out as people write it and as they hardly ever do: attention,
// projections of one input, activations behind matmuls, statistics of rows.
#include "test/support/HostileWriter.h"

#include <algorithm>
#include <cmath>

namespace hydra::test::hostile {

/// The numbers of chunks of `size` rows or columns: [length], each number `size` times.
Value Writer::chunkNumbers(int64_t length, int64_t size) {
  const int64_t chunks = (length + size - 1) / size;
  const Value numbers = iota({Dim(chunks), Dim(size)}, 0);
  const Value flat = reshape(numbers, {Dim(chunks * size)});
  return chunks * size == length
             ? flat
             : slice(flat, 0, random.chance(0.9) ? 0 : chunks * size - length, length);
}

/// A condition over scores [.., rows, columns]: a mask that attention has, or nearly.
Value Writer::scoreMask(const Dim &rows, const Dim &columns) {
  const Element element = random.chance(0.8) ? Element::I32 : Element::F32;
  const Shape square = {rows, columns};
  const Value row =
      random.chance(0.5) ? iota(square, 0, element) : iota({rows, Dim(1)}, 0, element);
  const Value column =
      random.chance(0.5) ? iota(square, 1, element) : iota({Dim(1), columns}, 1, element);
  switch (random.below(6)) {
  case 0: { // a window
    const Value behind =
        random.chance(0.85) ? binary("sub", row, column, 3.0) : binary("sub", column, row, 3.0);
    const double width = element == Element::F32 && random.chance(0.5)
                             ? 1.5
                             : static_cast<double>(random.between(1, 4));
    return compare(behind, constant(width, {}, element),
                   random.pick<std::string>({"lt", "lt", "le", "ge"}));
  }
  case 1: { // chunks
    const int64_t size = random.between(1, std::max(rows.size, columns.size));
    const Value a = reshape(chunkNumbers(rows.size, size), {rows, Dim(1)});
    const Value b = reshape(
        chunkNumbers(columns.size, random.chance(0.85) ? size : random.between(1, columns.size)),
        {Dim(1), columns});
    return compare(a, b, random.pick<std::string>({"eq", "eq", "eq", "le"}));
  }
  case 2:
    return compare(row, column, random.pick<std::string>({"ge", "ge", "gt", "le"}));
  default:
    return compare(column, row, random.pick<std::string>({"le", "le", "le", "lt", "ge"}));
  }
}

bool Writer::writtenAttention() {
  const Dim batch(random.pick<int64_t>({1, 1, 2})), heads(random.pick<int64_t>({1, 2, 3}));
  const Dim length(random.pick<int64_t>({1, 2, 3, 5, 8, 16, 17})),
      keys = random.chance(0.8) ? length : Dim(random.between(1, 9));
  const Dim width(random.pick<int64_t>({1, 2, 4})),
      valueWidth = random.chance(0.7) ? width : Dim(random.between(1, 4));
  auto heads4 = [&](const Dim &rows, const Dim &columns) {
    if (random.chance(0.5))
      return tame(make({batch, heads, rows, columns}));
    return tame(transpose(make({batch, rows, heads, columns}), {0, 2, 1, 3}));
  };
  const Value q = heads4(length, width), k = heads4(keys, width), v = heads4(keys, valueWidth);
  Value x{.shape = {batch, heads, length, keys}};
  x.size = q.size * k.size * std::sqrt(static_cast<double>(width.size));
  if (random.chance(0.6))
    x = emit("matmul", {q, k}, "transpose_b", x);
  else
    x = emit("matmul", {q, transpose(k, {0, 1, 3, 2})}, "", x);
  auto scale = [&] {
    if (random.chance(0.5))
      x = binary("mul", x, constant(random.pick<double>({0.5, 1.0, 0.354})), 0.5 * x.size);
    else if (random.chance(0.5))
      x = binary("div", x, constant(2.0), 0.5 * x.size);
  };
  scale();
  if (random.chance(0.25)) { // a cap, or nearly
    x = unary("tanh", x, 1.0);
    if (random.chance(0.8))
      x = binary("mul", x, constant(random.pick<double>({0.5, 2.0, 5.0, -2.0})), 5.0);
  }
  const int64_t masks = random.pick<int64_t>({0, 1, 1, 2, 3});
  for (int64_t i = 0; i < masks; ++i) {
    const Value chosen = scoreMask(length, keys);
    const bool adds = random.chance(0.3);
    // What is added to -1e9 would round differently in f32 and f64, where a row keeps nothing.
    const std::string never =
        masks == 1 && !adds && random.chance(0.5)
            ? "-1000000000.0"
            : random.pick<std::string>({"-inf", "-1.0e30", "-1.0e30", "-4.0"});
    Value low{.size = 1.0};
    low = emit("constant", {}, "value = " + never, low);
    block().values.pop_back(); // no other operation has a use for it
    if (!adds) {
      x = emit("select", {chosen, x, low}, "", x);
    } else {
      Value bias = x;
      bias.shape = chosen.shape;
      bias = emit("select", {chosen, constant(0.0), low}, "", bias);
      block().values.pop_back();
      x = emit("add", {x, bias}, "", x);
    }
    block().values.pop_back();
  }
  if (random.chance(0.2) && x.size < 2.0) {
    const size_t reach = block().values.size();
    scale();
    if (masks > 0) // what was masked is within no other operation's reach
      block().values.resize(reach);
  }
  Value weights{.shape = x.shape, .size = 0.3, .low = 0.0};
  weights = emit("softmax", {x}, "", weights);
  if (random.chance(0.1)) // which attention has, but none that is recognised
    weights = emit("dropout", {weights}, "p = 0.25", weights);
  Value result{.shape = {batch, heads, length, valueWidth}, .size = v.size};
  result = emit("matmul", {weights, v}, "", result);
  if (random.chance(0.6)) {
    result = transpose(result, {0, 2, 1, 3});
    if (random.chance(0.7))
      reshape(result, {batch, length, product(heads, valueWidth)});
  }
  return true;
}

/// Two matmuls of one input, one of them behind an activation, multiplied.
bool Writer::gating() {
  std::optional<Value> x = find([this](const Value &v) {
    return v.element == Element::F32 && v.rank() >= 1 && v.rank() <= mostRank &&
           v.shape.back().isNumber();
  });
  if (!x)
    return false;
  const Dim inner = x->shape.back(), width = dim();
  if (width.size * inner.size > kMostElements ||
      x->count() / inner.size * width.size > kMostElements)
    return false;
  x = tame(*x);
  const Dim other = random.chance(0.85) ? width : Dim(1);
  auto matrix = [&](const Dim &rows) {
    return random.chance(0.8) ? parameter({rows, inner}) : make({rows, inner});
  };
  const Value first = matrix(width),
              second = random.chance(0.9) || !(other == width) ? matrix(other) : first;
  std::optional<Value> bias, otherBias;
  if (random.chance(0.3)) {
    bias = parameter({width});
    if (random.chance(0.8))
      otherBias = parameter({other});
  }
  Value gate = tame(linear(*x, first, bias)), up = tame(linear(*x, second, otherBias));
  if (random.chance(0.9))
    gate = unary(random.pick<std::string>({"silu", "gelu", "sigmoid", "tanh"}), gate, gate.size);
  tame(random.chance(0.5) ? binary("mul", gate, up, gate.size * up.size)
                          : binary("mul", up, gate, gate.size * up.size));
  return true;
}

/// Queries, keys and values of one input, with norms and rotations before attention.
bool Writer::projecting() {
  std::optional<Value> x = find([&](const Value &v) {
    return v.element == Element::F32 && v.rank() == 3 && v.shape[2].isNumber() &&
           canWrite(v.shape) && v.shape[0].size * v.shape[1].size <= 64;
  });
  if (!x)
    return false;
  x = tame(*x);
  const int64_t keyHeads = random.between(1, 2), heads = keyHeads * random.between(1, 2);
  const int64_t width = random.pick<int64_t>({2, 4, 6});
  const bool biased = random.chance(0.3), turned = random.chance(0.6), normed = random.chance(0.3);
  const std::string rotation = std::string("base = 100.0") +
                               (random.chance(0.5) ? " half_split" : "") +
                               (random.chance(0.2) ? " period = 2" : "");
  auto project = [&](int64_t count, bool isValue) {
    std::optional<Value> bias;
    const Dim all(count * width);
    const Value w = random.chance(0.85) ? parameter({all, x->shape[2]}) : make({all, x->shape[2]});
    if (biased)
      bias = parameter({all});
    Value y =
        reshape(tame(linear(*x, w, bias)), {x->shape[0], x->shape[1], Dim(count), Dim(width)});
    if (!isValue && normed) {
      Value result{.shape = y.shape};
      y = emit("rms_norm", {y, parameter({Dim(width)})}, "eps = 0.1", result);
    }
    if (!isValue && turned && random.chance(0.9))
      y = emit("rope", {y}, random.chance(0.85) ? rotation : "base = 10.0",
               Value{.shape = y.shape, .size = y.size});
    return y;
  };
  const Value q = project(heads, false), k = project(keyHeads, false),
              v = random.chance(0.85) ? project(keyHeads, true) : k;
  Value result{.shape = q.shape, .size = v.size};
  const Value o = emit("attention", {q, k, v},
                       std::string("scale = 0.5") + (random.chance(0.7) ? " causal" : ""), result);
  if (random.chance(0.5))
    reshape(o, {o.shape[0], o.shape[1], product(o.shape[2], o.shape[3])});
  return true;
}

/// An activation behind a matmul, which something else may read too.
bool Writer::activating() {
  std::optional<Value> x = find([](const Value &v) {
    return v.element == Element::F32 && v.rank() >= 1 && v.rank() <= 3 && v.shape.back().isNumber();
  });
  if (!x)
    return false;
  const Dim inner = x->shape.back(), width(random.pick<int64_t>({1, 3, 4, 8, 16, 32}));
  if (width.size * inner.size > kMostElements ||
      x->count() / inner.size * width.size > kMostElements)
    return false;
  std::optional<Value> bias;
  if (random.chance(0.6))
    bias = make({width});
  const Value sums = tame(linear(tame(*x), make({width, inner}), bias));
  const Value y = unary(random.chance(0.7) ? "gelu" : "silu", sums, sums.size);
  if (random.chance(0.4))
    tame(binary(random.chance(0.5) ? "mul" : "add", y, sums, sums.size * sums.size));
  return true;
}

/// Norms of one value, and the same written out; the shape is often square, so that what goes over
/// rows could go over columns.
bool Writer::rowStatistics() {
  std::optional<Value> x = find([&](const Value &v) {
    return v.element == Element::F32 && v.rank() >= 1 && v.rank() <= mostRank &&
           allNumbers(v.shape);
  });
  if (!x || random.chance(0.5)) {
    const Dim side(random.pick<int64_t>({1, 2, 3, 4, 8}));
    x = make(random.chance(0.6) ? Shape{side, side} : Shape{Dim(random.between(1, 3)), side, side});
  }
  x = tame(*x);
  const Shape width = {x->shape.back()};
  const std::string eps = "eps = 0.1";
  auto norm = [&](bool centred) {
    std::vector<Value> operands = {*x, make(width)};
    if (centred)
      operands.push_back(make(width));
    return tame(emit(centred ? "layer_norm" : "rms_norm", operands,
                     random.chance(0.85) ? eps : "eps = 1.0",
                     Value{.shape = x->shape, .size = operands[1].size + operands.back().size}));
  };
  const bool centred = random.chance(0.5);
  norm(centred);
  if (random.chance(0.5))
    norm(random.chance(0.8) ? centred : !centred);
  std::vector<bool> mask(x->rank(), false);
  mask.back() = true;
  const bool keep = random.chance(0.6);
  auto mean = [&](const Value &v) {
    Value m = reduce("mean", v, mask, keep);
    if (!keep && random.chance(0.5)) { // stands right again
      Shape unit = x->shape;
      unit.back() = Dim(1);
      m = reshape(m, unit);
    }
    return m;
  };
  auto fits = [&](const Value &m) { return commonShape(m.shape, x->shape).has_value(); };
  Value centre = *x;
  if (centred || random.chance(0.2)) {
    const Value m = mean(*x);
    if (!fits(m))
      return true;
    centre = binary("sub", *x, m, x->size);
    if (!(centre.shape == x->shape))
      return true;
  }
  const Value variance = mean(binary("mul", centre, centre, centre.size * centre.size));
  Value r =
      unary("rsqrt", binary("add", variance, constant(random.chance(0.85) ? 0.1 : 0.5), 1.0), 1.0);
  if (fits(r))
    binary("mul", centre, r, 1.0);
  return true;
}

} // namespace hydra::test::hostile
