// Random matmuls, norms, attention and losses.
#include "test/support/RandomOps.h"

namespace hydra::test {

/// The typical magnitude of a sum of that many products with a parameter.
static double summed(double size, int64_t terms) {
  return 0.6 * size * std::sqrt(static_cast<double>(terms));
}

Operand OpWriter::linear(const Operand &x, const Dim &width) {
  const Dim &inner = x.shape.back();
  std::vector<Operand> operands = {x, parameter({width, inner})};
  if (random.chance(0.4))
    operands.push_back(parameter({width}));
  Shape shape = x.shape;
  shape.back() = width;
  return op("linear", operands, "", shape, summed(x.size, inner.size));
}

Dim OpWriter::allHeads(const std::string &count, const std::string &width) const {
  if (count == "H" && width == "hd")
    return dim("D");
  return {count + " * " + width, sizes.at(count) * sizes.at(width)};
}

Operand OpWriter::heads(const Operand &x, const std::string &count, const std::string &width) {
  const Operand wide = tame(linear(x, allHeads(count, width)));
  return reshape(wide, {x.shape[0], x.shape[1], dim(count), dim(width)});
}

Operand OpWriter::ofShape(const Shape &shape) {
  const std::optional<Operand> same = find([&](const Operand &x) { return x.shape == shape; });
  const std::optional<Operand> projected = find([&](const Operand &x) {
    return !shape.empty() && x.shape.size() == shape.size() && isModelDim(shape.back()) &&
           isModelDim(x.shape.back()) &&
           std::equal(shape.begin(), shape.end() - 1, x.shape.begin());
  });
  if (projected && (!same || random.chance(0.6)))
    return tame(linear(*projected, shape.back()));
  if (same)
    return *same;
  const Operand mean = reduceAll(any());
  const Operand wide = op("broadcast", {mean}, "shape = " + textOf(shape), shape, mean.size);
  return binary("add", wide, parameter(shape), 1.0);
}

bool OpWriter::linear() {
  const std::optional<Operand> x = rows();
  if (!x)
    return false;
  const Dim width = someWidth();
  if (elementsOf(x->shape) / x->shape.back().size * width.size > kMostElements)
    return false;
  remember(tame(linear(*x, width)));
  return true;
}

bool OpWriter::matmul() {
  const std::optional<Operand> x = withRank(2, 4);
  if (!x)
    return false;
  const size_t rank = x->shape.size();
  struct Choice {
    Operand y;
    bool ta, tb;
  };
  std::vector<Choice> choices;
  for (const Operand &y : scope.values) {
    if (y.shape.size() != rank || !std::equal(y.shape.begin(), y.shape.end() - 2, x->shape.begin()))
      continue;
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        if (x->shape[ta ? rank - 2 : rank - 1] == y.shape[tb ? rank - 1 : rank - 2])
          choices.push_back({y, ta, tb});
  }
  Choice c = random.pick(choices); // x itself fits, transposed
  const Dim summedOver = x->shape[c.ta ? rank - 2 : rank - 1];
  Shape shape = x->shape;
  shape[rank - 2] = x->shape[c.ta ? rank - 1 : rank - 2];
  shape[rank - 1] = c.y.shape[c.tb ? rank - 2 : rank - 1];
  if (elementsOf(shape) > kMostElements)
    return false;
  // Sometimes the transposition is an operation of its own, which canonicalization absorbs.
  auto swapped = [&](const Operand &v) {
    std::string order;
    for (size_t i = 0; i < rank; ++i)
      order += (i ? ", " : "") + std::to_string(i + 2 < rank ? i : 2 * rank - 3 - i);
    Shape transposed = v.shape;
    std::swap(transposed[rank - 1], transposed[rank - 2]);
    return op("transpose", {v}, "order = [" + order + "]", transposed, v.size);
  };
  Operand a = *x;
  if (random.chance(0.3)) {
    a = swapped(a);
    c.ta = !c.ta;
  }
  if (random.chance(0.3)) {
    c.y = swapped(c.y);
    c.tb = !c.tb;
  }
  const std::string flags = std::string(c.ta ? "transpose_a" : "") + (c.ta && c.tb ? " " : "") +
                            (c.tb ? "transpose_b" : "");
  const double size = a.size * c.y.size * std::sqrt(static_cast<double>(summedOver.size));
  remember(tame(op("matmul", {a, c.y}, flags, shape, 2.0 * size)));
  return true;
}

bool OpWriter::embedding() {
  if (!scope.inEntry)
    return false;
  const Dim width = someWidth();
  const Operand table = parameter({dim("V"), width});
  Operand tokens{"tokens", {dim("B"), dim("S")}};
  if (random.chance(0.3))
    tokens = reshape(tokens, {Dim{"B * S", dim("B").size * dim("S").size}});
  Shape shape = tokens.shape;
  shape.push_back(width);
  remember(op("embedding", {tokens, table}, "", shape, table.size));
  return true;
}

/// A matmul for the tokens below some id, or among the largest of a row; the others get zero.
bool OpWriter::routing() {
  if (!scope.inEntry)
    return false;
  const Dim all{"B * S", dim("B").size * dim("S").size}, width = someWidth(), inner = someWidth();
  const Operand tokens = reshape({"tokens", {dim("B"), dim("S")}}, {all});
  const Operand limit = op("constant", {}, "value = 3 dtype = i32", {}, 3.0);
  Operand mask = op("compare", {tokens, limit}, "is = \"lt\"", {all}, 1.0);
  scope.code->back().broadcast = {all};
  scope.code->back().repeated = {false, true};
  if (random.chance(0.5)) { // of numbers that are the same for equal tokens: ties go by their place
    const Operand scores =
        reshape(op("cast", {tokens}, "to = f32", {all}, 100.0), {dim("B"), dim("S")});
    mask = reshape(op("top_k", {scores}, "k = max(1, floor(S * 0.5))", scores.shape, 1.0), {all});
  }
  const Operand x = op("embedding", {tokens, parameter({dim("V"), width})}, "", {all, width}, 1.0);
  Statement compact;
  compact.op = "compact";
  compact.operands = {mask.name};
  for (const char *result : {"index", "place", "count"})
    compact.results.push_back(freshName(result));
  const Operand index{compact.results[0], {all}}, place{compact.results[1], {all}};
  add(std::move(compact));
  const Operand some = op("take_rows", {x, index, place}, "", x.shape, x.size);
  const Operand product = tame(linear(some, inner));
  remember(op("take_rows", {product, place, index}, "", product.shape, product.size));
  return true;
}

/// A matrix for each group of rows: tokens are in the groups that their number says, at most two.
bool OpWriter::grouping() {
  if (!scope.inEntry)
    return false;
  const Dim all{"B * S", dim("B").size * dim("S").size}, width = someWidth(), inner = someWidth();
  const Dim groups{"3", 3}, twice{"2 * B * S", 2 * all.size};
  if (twice.size * std::max(width.size, inner.size) > kMostElements ||
      3 * width.size * inner.size > kMostElements)
    return false;
  const Operand tokens = reshape({"tokens", {dim("B"), dim("S")}}, {all, {"1", 1}});
  const Operand wide = op("broadcast", {tokens}, "shape = [B * S, 3]", {all, groups}, 3.0);
  const Operand number = op("iota", {}, "shape = [B * S, 3] axis = 1", {all, groups}, 2.0);
  const Operand sum = op("add", {wide, number}, "", {all, groups}, 4.0);
  const Operand limit = op("constant", {}, "value = 4 dtype = i32", {}, 4.0);
  const Operand mask = op("compare", {sum, limit}, "is = \"lt\"", {all, groups}, 1.0);
  scope.code->back().broadcast = {all, groups};
  scope.code->back().repeated = {false, true};
  const Operand ids = reshape(tokens, {all});
  const Operand x = op("embedding", {ids, parameter({dim("V"), width})}, "", {all, width}, 1.0);
  Statement route;
  route.op = "route";
  route.operands = {mask.name};
  route.attributes = "k = 2";
  for (const char *result : {"index", "group", "place", "offsets"})
    route.results.push_back(freshName(result));
  const Operand index{route.results[0], {twice}}, group{route.results[1], {twice}},
      place{route.results[2], {all, {"2", 2}}}, offsets{route.results[3], {{"4", 4}}};
  add(std::move(route));
  const Operand sorted = op("take_rows", {x, index, place}, "", {twice, width}, x.size);
  const bool transposed = random.chance(0.3);
  const Operand w = parameter({groups, transposed ? width : inner, transposed ? inner : width});
  Operand y = tame(op("grouped_linear", {sorted, w, offsets}, transposed ? "transposed" : "",
                      {twice, inner}, summed(sorted.size, width.size)));
  if (random.chance(0.5)) // a bias for each group
    y = binary("add", y, op("embedding", {group, parameter({groups, inner})}, "", y.shape, 0.6),
               y.size + 0.6);
  if (random.chance(0.3))
    remember(tame(op("grouped_outer", {y, sorted, offsets}, "", {groups, inner, width},
                     y.size * sorted.size * std::sqrt(static_cast<double>(all.size)))));
  remember(op("take_rows", {y, place, index}, "", {all, inner}, 1.5 * y.size));
  return true;
}

/// How many tokens have which number of digits: whole numbers, so that no rounding moves one over a
/// limit.
bool OpWriter::magnitudes() {
  if (!scope.inEntry)
    return false;
  const Shape all{dim("B"), dim("S")};
  const Operand x = op("cast", {Operand{"tokens", all}}, "to = f32", all, 10.0);
  std::vector<Operand> operands{x};
  if (random.chance(0.5)) { // another tensor, which is the same on all ranks
    const Shape own{{"5", 5}};
    const Operand i = op("iota", {}, "shape = [5] axis = 0", own, 2.0);
    operands.push_back(op("cast", {i}, "to = f32", own, 2.0));
  }
  std::string flags = "first = -1 count = 6";
  if (random.chance(0.3)) {
    operands.insert(operands.begin(), constant(0.25));
    flags += " scaled";
  }
  const Shape shape{{"6", 6}};
  const double size = static_cast<double>(elementsOf(all));
  const Operand counts = op("count_exponents", operands, flags, shape, size);
  remember(tame(op("cast", {counts}, "to = f32", shape, size)));
  return true;
}

/// The spectrum of rows, which zeros make twice as long, and rows of what becomes of it.
bool OpWriter::transforms() {
  const std::optional<Operand> x = withRank(1, 3);
  if (!x || 4 * elementsOf(x->shape) > kMostElements)
    return false;
  const Dim width = x->shape.back();
  const size_t axis = x->shape.size() - 1;
  Shape rows = x->shape, spectrum = x->shape;
  rows.back() = {"2 * (" + width.text + ")", 2 * width.size};
  spectrum.back() = {"(" + width.text + ") + 1", width.size + 1};
  spectrum.push_back({"2", 2});
  const Operand padded =
      op("pad", {*x}, "axis = " + std::to_string(axis) + " before = 0 after = " + width.text, rows,
         x->size);
  Operand y = tame(op("rfft", {padded}, "", spectrum, summed(x->size, width.size)));
  remember(y);
  if (random.chance(0.5)) // the cosine of the ends' imaginary parts is not 0
    y = unary(random.chance(0.5) ? "tanh" : "cos", y, 0.8);
  remember(tame(op("irfft", {y}, "", rows, summed(y.size, 4 * width.size))));
  return true;
}

/// A recurrence along the tokens of each channel, whose states shrink.
bool OpWriter::recurrences() {
  const std::optional<Operand> x = withRank(3, 3);
  if (!x || !isModelDim(x->shape[2]))
    return false;
  const int64_t states = random.between(1, 4);
  const Shape terms = {x->shape[2], {std::to_string(states), states}};
  auto factor = [&] { // at most 0.6: with both parts the states shrink
    const Operand wide = unary("tanh", parameter(terms), 0.7);
    return binary("mul", wide, constant(0.6), 0.3);
  };
  std::vector<Operand> operands = {*x, factor(), factor(), parameter(terms), parameter(terms)};
  if (random.chance(0.3)) {
    const Shape marks = {x->shape[0], x->shape[1], {"1", 1}};
    const Operand place =
        op("iota", {}, "shape = " + textOf(marks) + " axis = 1 dtype = f32", marks, 3.0);
    operands.push_back(unary("sin", place, 0.7));
  }
  remember(tame(op("linear_recurrence", operands, "", x->shape, summed(x->size, 2 * states))));
  return true;
}

bool OpWriter::norm() {
  const std::optional<Operand> x = rows();
  if (!x)
    return false;
  const bool centred = random.chance(0.5);
  std::vector<Operand> operands = {*x, parameter({x->shape.back()})};
  if (centred)
    operands.push_back(parameter({x->shape.back()}));
  remember(op(centred ? "layer_norm" : "rms_norm", operands,
              random.chance(0.5) ? "eps = small" : "eps = 0.1", x->shape, 1.0));
  return true;
}

bool OpWriter::softmax() {
  const std::optional<Operand> x = withRank(1, 4);
  if (!x)
    return false;
  remember(unary("softmax", *x, 0.5));
  return true;
}

std::optional<Operand> OpWriter::sequence() {
  return find([](const Operand &x) {
    return x.shape.size() == 3 && isModelDim(x.shape[2]) && x.shape[0].size * x.shape[1].size <= 24;
  });
}

/// A value whose last dimension can meet that of a parameter.
std::optional<Operand> OpWriter::rows() {
  return find([](const Operand &x) { return !x.shape.empty() && isModelDim(x.shape.back()); });
}

bool OpWriter::rope() {
  std::optional<Operand> x =
      find([](const Operand &v) { return v.shape.size() == 4 && v.shape.back().size % 2 == 0; });
  if (!x) {
    const std::optional<Operand> narrow = sequence();
    if (!narrow)
      return false;
    x = heads(*narrow, random.chance(0.5) ? "H" : "Hk", "hd");
  }
  std::string attributes = random.chance(0.5) ? "base = rope" : "base = 100.0";
  if (random.chance(0.4))
    attributes += " half_split";
  if (random.chance(0.2))
    attributes += " inverse";
  if (random.chance(0.3))
    attributes += " period = " + std::to_string(random.between(1, 4));
  remember(op("rope", {*x}, attributes, x->shape, x->size));
  return true;
}

bool OpWriter::attention() {
  const std::optional<Operand> x = sequence();
  if (!x)
    return false;
  const Operand y = *find([&](const Operand &v) {
    return v.shape.size() == 3 && isModelDim(v.shape[2]) && v.shape[0] == x->shape[0] &&
           v.shape[0].size * v.shape[1].size <= 24;
  });
  const int64_t mask = x->shape[1] == y.shape[1] ? random.below(5) : 0;
  const std::string valueWidth = random.chance(0.7) ? "hd" : "F";
  Operand q = heads(*x, "H", "hd");
  Operand k = heads(y, "Hk", "hd");
  const Operand v = heads(y, "Hk", valueWidth);
  if (random.chance(0.3)) {
    q = op("rope", {q}, "base = rope", q.shape, q.size);
    k = op("rope", {k}, "base = rope", k.shape, k.size);
  }
  std::string attributes = random.chance(0.5) ? "scale = 1 / sqrt(hd)" : "scale = 0.4";
  if (random.chance(0.3))
    attributes += random.chance(0.5) ? " cap = 1.5" : " cap = 20.0";
  if (mask >= 1)
    attributes += " causal";
  if (mask == 2 || mask == 4)
    attributes += " chunk = C";
  if (mask >= 3)
    attributes += " window = W";
  Shape shape = q.shape;
  shape.back() = dim(valueWidth);
  const Operand o = op("attention", {q, k, v}, attributes, shape, v.size);
  const Dim width = allHeads("H", valueWidth);
  remember(random.chance(0.8) ? reshape(o, {shape[0], shape[1], width}) : o);
  return true;
}

bool OpWriter::loss() {
  const std::optional<Operand> found = find([](const Operand &v) {
    return v.shape.size() == 3 && v.shape[0].text == "B" && v.shape[1].text == "S" &&
           isModelDim(v.shape[2]);
  });
  if (!scope.inEntry || !found)
    return false;
  Operand x = *found, labels{"labels", {x.shape[0], x.shape[1]}};
  if (random.chance(0.3)) {
    const Dim rows = {"B * S", x.shape[0].size * x.shape[1].size};
    x = reshape(x, {rows, x.shape[2]});
    labels = reshape(labels, {rows});
  }
  if (random.chance(0.5)) {
    const Operand w = parameter({dim("V"), x.shape.back()});
    remember(op("linear_cross_entropy", {x, w, labels}, "", {}, 2.0));
  } else {
    const Operand logits = linear(x, dim("V"));
    remember(op("cross_entropy", {logits, labels}, "", {}, 2.0));
  }
  return true;
}

} // namespace hydra::test
