// Random matmuls, norms, rotations and attention, with operands of every kind.
#include "test/support/HostileWriter.h"

#include <algorithm>
#include <cmath>

namespace hydra::test::hostile {

bool Writer::linears() {
  std::optional<Value> x = anyOfRank(1, mostRank);
  if (!x)
    return false;
  const Dim inner = x->shape.back();
  std::optional<Value> w;
  if (!inner.isNumber() || random.chance(0.15)) // any matrix that fits, perhaps x itself
    w = find([&](const Value &v) {
      return v.rank() == 2 && v.element == x->element && v.shape[1] == inner;
    });
  if (!w) {
    const Dim width = dim();
    if (!canWrite({inner}) || width.size * inner.size > kMostElements)
      return false;
    w = make({width, inner}, x->element);
  }
  if (x->count() / inner.size * w->shape[0].size > kMostElements)
    return false;
  std::optional<Value> bias;
  if (random.chance(0.4) && canWrite({w->shape[0]}))
    bias = make({w->shape[0]}, x->element);
  tame(linear(tame(*x), *w, bias));
  return true;
}

bool Writer::matmuls() {
  std::optional<Value> a = anyOfRank(1, mostRank);
  if (!a)
    return false;
  if (a->rank() == 1) { // a row or a column
    if (!canWrite(a->shape))
      return false;
    a = random.chance(0.5) ? reshape(*a, {Dim(1), a->shape[0]})
                           : reshape(*a, {a->shape[0], Dim(1)});
  }
  const size_t rank = a->rank();
  const bool ta = random.chance(0.5), tb = random.chance(0.5);
  const Dim inner = a->shape[ta ? rank - 2 : rank - 1], rows = a->shape[ta ? rank - 1 : rank - 2];
  const bool sameElement = a->isFloat();
  std::optional<Value> b;
  if (random.chance(0.4))
    b = find([&](const Value &v) {
      return sameElement && v.element == a->element && v.rank() == rank &&
             std::equal(v.shape.begin(), v.shape.end() - 2, a->shape.begin()) &&
             v.shape[tb ? rank - 1 : rank - 2] == inner;
    });
  if (!b && random.chance(0.15) && ta != tb) // with itself
    b = a;
  if (!b) {
    Shape shape = a->shape;
    const Dim width = dim();
    shape[rank - 2] = tb ? width : inner;
    shape[rank - 1] = tb ? inner : width;
    if (elementsOf(shape) > kMostElements || !canWrite(shape))
      return false;
    b = make(shape, a->element);
  }
  Value result{.shape = a->shape, .element = a->element};
  result.shape[rank - 2] = rows;
  result.shape[rank - 1] = b->shape[tb ? rank - 2 : rank - 1];
  if (result.count() > kMostElements)
    return false;
  const Value left = tame(*a), right = b->name == a->name ? left : tame(*b);
  const double terms = static_cast<double>(inner.size);
  result.size = left.size * right.size * (right.distinct ? std::sqrt(terms) : terms);
  result.distinct = left.distinct && right.distinct && left.name != right.name;
  std::vector<Value> operands = {left, right};
  std::string attributes;
  auto flag = [&](const char *name) {
    attributes += (attributes.empty() ? "" : " ") + std::string(name);
  };
  if (ta)
    flag("transpose_a");
  if (tb)
    flag("transpose_b");
  if (a->element == Element::Narrow && random.chance(0.3)) {
    flag("dtype = f32");
    result.element = Element::F32;
  }
  if (random.chance(0.1))
    flag("full_precision");
  else if (a->element == Element::F32 && random.chance(0.06))
    flag(random.chance(0.5) ? "compute = f32" : "compute = tf32");
  if (random.chance(0.2) && canWrite(result.shape)) {
    operands.push_back(make(result.shape, result.element));
    result.size += operands.back().size;
    result.distinct = false;
  }
  tame(emit("matmul", operands, attributes, result));
  return true;
}

bool Writer::norms() {
  std::optional<Value> x = anyOfRank(1, mostRank);
  if (!x || !canWrite({x->shape.back()}))
    return false;
  const bool centred = random.chance(0.5);
  std::vector<Value> operands = {tame(*x), make({x->shape.back()}, x->element)};
  if (centred)
    operands.push_back(make({x->shape.back()}, x->element));
  Value result{.shape = x->shape, .element = x->element, .size = operands[1].size + 0.1};
  if (centred)
    result.size += operands[2].size;
  result.distinct = x->distinct && operands[1].distinct && x->shape.back().size > 2;
  tame(emit(centred ? "layer_norm" : "rms_norm", operands,
            "eps = " + random.pick<std::string>({"1.0e-3", "1.0e-2", "0.1", "1.0"}), result));
  return true;
}

Value Writer::softmaxOf(const Value &x) {
  Value result{.shape = x.shape, .element = x.element, .low = 0.0};
  result.size = 1.0 / std::sqrt(static_cast<double>(x.shape.back().size));
  result.distinct = x.distinct && x.shape.back().size > 1;
  return emit("softmax", {x}, "", result);
}

bool Writer::softmaxes() {
  std::optional<Value> x = anyOfRank(1, mostRank);
  if (!x)
    return false;
  softmaxOf(tame(*x));
  return true;
}

/// The spectrum of rows, and rows of what becomes of it. Those with an odd number stand twice in
/// them.
bool Writer::transforms() {
  const std::optional<Value> found = anyOfRank(1, 3);
  if (!found || 4 * found->count() > kMostElements)
    return false;
  const size_t axis = found->rank() - 1;
  Value x = tame(found->element == Element::F32 ? *found : cast(*found, Element::F32));
  Dim inside = x.shape[axis]; // half of a row
  if (inside.isNumber() && inside.size % 2 == 0 && random.chance(0.6))
    inside = Dim(inside.size / 2);
  else
    x = concat({x, x}, axis);
  const Shape rows = x.shape;
  Value spectrum{.shape = rows};
  spectrum.shape[axis] = sum(inside, Dim(1));
  spectrum.shape.push_back(Dim(2));
  spectrum.size = x.size * std::sqrt(static_cast<double>(rows[axis].size));
  Value y = tame(emit("rfft", {x}, "", spectrum));
  std::string attributes;
  if (random.chance(0.5)) // the cosine of the ends' imaginary parts is not 0
    y = unary(random.pick<std::string>({"tanh", "cos", "silu"}), y, 0.8);
  else if (random.chance(0.4))
    attributes = "real_ends";
  Value result{.shape = rows};
  result.size = y.size * std::sqrt(2.0 * static_cast<double>(rows[axis].size));
  tame(emit("irfft", {y}, attributes, result));
  return true;
}

/// A recurrence along the second axis of what is in f32, maybe with marks of where it begins anew.
bool Writer::recurrences() {
  const std::optional<Value> found = anyOfRank(3, 3);
  if (!found)
    return false;
  const Value x = tame(found->element == Element::F32 ? *found : cast(*found, Element::F32));
  const Shape terms = {x.shape[2], Dim(random.pick<int64_t>({1, 2, 3, 5}))};
  if (elementsOf(terms) > kMostElements || !canWrite(terms))
    return false;
  std::vector<Value> operands = {x};
  for (int i = 0; i < 2; ++i) { // at most 0.6: with both parts the states shrink
    const Value part = unary("sin", make(terms), 0.7);
    Value factor{.shape = terms};
    factor.size = 0.4;
    operands.push_back(emit("mul", {part, constant(0.6)}, "", factor));
  }
  for (int i = 0; i < 2; ++i)
    operands.push_back(tame(make(terms)));
  const Shape marks = {x.shape[0], x.shape[1], Dim(1)};
  if (random.chance(0.4) && canWrite(marks))
    operands.push_back(make(marks));
  Value result{.shape = x.shape};
  result.size = x.size * std::sqrt(2.0 * static_cast<double>(terms[1].size));
  tame(emit("linear_recurrence", operands, "", result));
  return true;
}

/// Some value as [batch, length, heads, width], all of them views where its shape allows it.
std::optional<Value> Writer::sequenceHeads(const Value &like, const Dim &length, int64_t heads,
                                           int64_t width) {
  const Shape shape = {like.shape[0], length, Dim(heads), Dim(width)};
  if (elementsOf(shape) > kMostElements || !canWrite(shape))
    return std::nullopt;
  switch (random.below(4)) {
  case 0: { // heads in front of positions
    const Shape turned = {shape[0], shape[2], shape[1], shape[3]};
    return transpose(make(turned, like.element), {0, 2, 1, 3});
  }
  case 1: { // heads side by side
    const Shape flat = {shape[0], shape[1], product(shape[2], shape[3])};
    return reshape(make(flat, like.element), shape);
  }
  default:
    return make(shape, like.element);
  }
}

bool Writer::ropes() {
  std::optional<Value> x = find([](const Value &v) {
    return v.isFloat() && v.rank() == 4 && v.shape[3].isNumber() && v.shape[3].size % 2 == 0;
  });
  if (!x || random.chance(0.3)) {
    const Value like = make({random.chance(0.5) ? Dim(1) : dim()});
    x = sequenceHeads(like, dim(), random.between(1, 3), random.pick<int64_t>({2, 4, 6, 16}));
  }
  if (!x)
    return false;
  std::string attributes = "base = " + random.pick<std::string>({"100.0", "1.0e4", "1.0"});
  if (random.chance(0.4))
    attributes += " half_split";
  if (random.chance(0.3))
    attributes += " inverse";
  if (random.chance(0.3))
    attributes += " period = " + std::to_string(random.between(1, 5));
  Value result = *x;
  result.low = -std::numeric_limits<double>::infinity();
  result.repeatable = false;
  std::vector<Value> operands = {tame(*x)};
  if (random.chance(0.3)) // whole numbers: another one is rounded differently by everyone
    operands.push_back(iota({x->shape[0], x->shape[1]}, random.below(2), Element::F32));
  emit("rope", operands, attributes, result);
  return true;
}

bool Writer::attentions() {
  const double draw = 0.5 * (random.uniform() + 1.0);
  std::optional<Value> q, k, v;
  auto part = [&](const Value &whole, int64_t start, int64_t heads, int64_t width) {
    const Value some = slice(whole, 2, start, heads * width);
    return reshape(some, {whole.shape[0], whole.shape[1], Dim(heads), Dim(width)});
  };
  if (draw < 0.25) { // one value three times
    q = find([](const Value &x) { return x.isFloat() && x.rank() == 4 && x.count() <= 2048; });
    if (!q) {
      std::optional<Value> x =
          find([](const Value &y) { return y.isFloat() && y.rank() == 3 && y.count() <= 2048; });
      if (!x || !canWrite(x->shape))
        return false;
      q = reshape(*x, {x->shape[0], x->shape[1], Dim(1), x->shape[2]});
    }
    k = v = q;
  } else if (draw < 0.55) { // parts of one matmul
    std::optional<Value> x = find([&](const Value &y) {
      return y.isFloat() && y.rank() == 3 && y.shape[2].isNumber() &&
             y.shape[0].size * y.shape[1].size <= 128 && canWrite(y.shape);
    });
    if (!x) {
      const Shape shape = randomShape(3, 3);
      if (shape[0].size * shape[1].size > 128)
        return false;
      x = make(shape);
    }
    const int64_t keyHeads = random.between(1, 2), heads = keyHeads * random.between(1, 3);
    const int64_t width = random.pick<int64_t>({1, 2, 3, 4}),
                  valueWidth = random.chance(0.7) ? width : random.between(1, 4);
    const int64_t all = heads * width + keyHeads * (width + valueWidth);
    const Value fused =
        tame(linear(tame(*x), make({Dim(all), x->shape[2]}, x->element), std::nullopt));
    if (fused.element != x->element)
      return false;
    q = part(fused, 0, heads, width);
    k = part(fused, heads * width, keyHeads, width);
    v = part(fused, (heads + keyHeads) * width, keyHeads, valueWidth);
    if (width % 2 == 0 && random.chance(0.5)) // neighbours that turn alike, or nearly
      for (std::optional<Value> *turned : {&q, &k}) {
        Value result = **turned;
        result.repeatable = false;
        *turned =
            emit("rope", {**turned},
                 random.pick<std::string>({"base = 100.0", "base = 100.0", "base = 10.0"}), result);
      }
  } else {
    const int64_t keyHeads = random.pick<int64_t>({1, 1, 2, 3}),
                  heads = keyHeads * random.pick<int64_t>({1, 1, 2, 4});
    const int64_t width = random.pick<int64_t>({1, 2, 3, 4, 8}),
                  valueWidth = random.chance(0.6) ? width : random.pick<int64_t>({1, 2, 5});
    const Value like = make({random.chance(0.5) ? Dim(1) : dim()});
    const Dim length = dim(), keys = random.chance(0.7) ? length : dim();
    q = sequenceHeads(like, length, heads, width);
    k = sequenceHeads(like, keys, keyHeads, width);
    v = sequenceHeads(like, keys, keyHeads, valueWidth);
  }
  if (!q || !k || !v)
    return false;
  q = tame(*q);
  k = tame(*k);
  v = tame(*v);
  const Dim &length = q->shape[1];
  if (q->count() * k->shape[1].size > 100000)
    return false;
  std::string attributes =
      "scale = " + random.pick<std::string>({"0.4", "1.0", "1 / sqrt(" + q->shape[3].text + ")"});
  if (!q->shape[3].isNumber())
    attributes = "scale = 0.5";
  if (random.chance(0.3))
    attributes += " cap = " + random.pick<std::string>({"0.7", "3.0", "50.0"});
  if (length == k->shape[1] && random.chance(0.6)) {
    attributes += " causal";
    if (random.chance(0.35))
      attributes +=
          " chunk = " + std::to_string(random.between(1, std::min<int64_t>(length.size + 1, 9)));
    if (random.chance(0.35))
      attributes +=
          " window = " + std::to_string(random.between(1, std::min<int64_t>(length.size + 1, 9)));
  }
  double size = v->size;
  if (random.chance(0.15)) {
    attributes += " dropout = " + random.pick<std::string>({"0.0", "0.25", "0.5"});
    size *= 2.0;
  }
  if (random.chance(0.15))
    attributes += " dropkey = " + random.pick<std::string>({"0.0", "0.25", "0.9"});
  Value result{.shape = q->shape, .element = q->element, .size = size};
  result.shape[3] = v->shape[3];
  if (result.count() > kMostElements)
    return false;
  const Value o = emit("attention", {*q, *k, *v}, attributes, result);
  if (random.chance(0.5))
    reshape(o, {o.shape[0], o.shape[1], product(o.shape[2], o.shape[3])});
  return true;
}

} // namespace hydra::test::hostile
