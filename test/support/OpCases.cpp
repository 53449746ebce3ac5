// For every differentiable operation: random small models in all its forms.
#include "test/support/OpCases.h"

#include "llvm/ADT/StringExtras.h"

namespace hydra::test {

namespace {

using Ints = std::vector<int64_t>;

Ints randomShape(Random &r, int64_t least, int64_t most) {
  Ints shape(static_cast<size_t>(r.between(least, most)));
  for (int64_t &d : shape)
    d = r.pick<int64_t>({1, 2, 3, 4, 5});
  return shape;
}

std::string attribute(const std::string &name, const Ints &values) {
  return " " + name + " = " + shapeText(values);
}

std::string line(const std::string &text) { return "    " + text + "\n"; }

/// `op` on parameters of one shape, whose elements are in [low, high].
OpCase elementwise(const std::string &op, const std::vector<std::string> &names, double low,
                   double high, const std::string &prepare = "") {
  return {op, [=](Random &r) {
            SmallModel m;
            m.resultShape = randomShape(r, 0, 3);
            std::string operands;
            for (const std::string &name : names) {
              m.parameters.push_back({name, m.resultShape, low, high});
              operands += (operands.empty() ? "%" : ", %") + name;
            }
            m.code = prepare + line("%y = hydra." + op + " " + operands);
            return m;
          }};
}

/// A single operation with attributes on a parameter `x`.
SmallModel onX(const Ints &shape, const std::string &op, const std::string &attributes,
               const Ints &result) {
  SmallModel m;
  m.parameters = {{"x", shape}};
  m.resultShape = result;
  m.code = line("%y = hydra." + op + " %x" + attributes);
  return m;
}

OpCase reduction(const std::string &op, bool keep) {
  return {op + (keep ? "_keep" : ""), [=](Random &r) {
            const Ints shape = randomShape(r, 1, 4);
            Ints axes, result;
            const int64_t rank = static_cast<int64_t>(shape.size());
            const int64_t always = r.below(rank);
            for (int64_t i = 0; i < rank; ++i) {
              const bool reduced = i == always || r.chance(0.3);
              if (reduced)
                axes.push_back(r.chance(0.5) ? i : i - rank);
              if (!reduced || keep)
                result.push_back(reduced ? 1 : shape[static_cast<size_t>(i)]);
            }
            return onX(shape, op, attribute("axes", axes) + (keep ? " keep" : ""), result);
          }};
}

SmallModel broadcastModel(Random &r) {
  const Ints to = randomShape(r, 1, 4);
  Ints from(to.begin() + r.below(static_cast<int64_t>(to.size()) + 1), to.end());
  for (int64_t &d : from)
    d = r.chance(0.4) ? 1 : d;
  return onX(from, "broadcast", attribute("shape", to), to);
}

SmallModel reshapeModel(Random &r) {
  const int64_t a = r.between(1, 5), b = r.between(1, 3), c = r.between(1, 3);
  const Ints to = r.pick<Ints>({{a * b, c}, {a, b * c}, {a * b * c}, {c, 1, b, a}});
  return onX({a, b, c}, "reshape", attribute("shape", to), to);
}

SmallModel transposeModel(Random &r) {
  const Ints shape = randomShape(r, 1, 4);
  Ints order, result;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    order.insert(order.begin() + r.below(i + 1), i);
  for (const int64_t i : order)
    result.push_back(shape[static_cast<size_t>(i)]);
  return onX(shape, "transpose", attribute("order", order), result);
}

SmallModel sliceModel(Random &r) {
  const Ints shape = randomShape(r, 1, 4);
  const int64_t axis = r.below(static_cast<int64_t>(shape.size()));
  const int64_t all = shape[static_cast<size_t>(axis)], size = r.between(1, all);
  Ints result = shape;
  result[static_cast<size_t>(axis)] = size;
  return onX(shape, "slice",
             " axis = " + std::to_string(axis) + " start = " +
                 std::to_string(r.between(0, all - size)) + " size = " + std::to_string(size),
             result);
}

SmallModel padModel(Random &r) {
  const Ints shape = randomShape(r, 1, 4);
  const int64_t axis = r.below(static_cast<int64_t>(shape.size()));
  const int64_t before = r.below(3), after = r.below(3);
  Ints result = shape;
  result[static_cast<size_t>(axis)] += before + after;
  return onX(shape, "pad",
             " axis = " + std::to_string(axis) + " before = " + std::to_string(before) +
                 " after = " + std::to_string(after),
             result);
}

SmallModel concatModel(Random &r) {
  SmallModel m;
  const Ints shape = randomShape(r, 1, 3);
  const size_t axis = static_cast<size_t>(r.below(static_cast<int64_t>(shape.size())));
  std::vector<std::string> operands;
  m.resultShape = shape;
  m.resultShape[axis] = 0;
  for (int64_t i = 0, n = r.between(1, 3); i < n; ++i) {
    Ints part = shape;
    part[axis] = r.between(1, 4);
    m.resultShape[axis] += part[axis];
    m.parameters.push_back({"x" + std::to_string(i), part});
    operands.push_back("%x" + std::to_string(i));
  }
  if (r.chance(0.5)) { // one operand twice
    operands.push_back("%x0");
    m.resultShape[axis] += m.parameters[0].shape[axis];
  }
  m.code =
      line("%y = hydra.concat " + llvm::join(operands, ", ") + " axis = " + std::to_string(axis));
  return m;
}

OpCase linear(bool bias) {
  return {bias ? "linear_bias" : "linear", [=](Random &r) {
            SmallModel m;
            Ints x = randomShape(r, 1, 3);
            const int64_t n = r.between(1, 5);
            m.parameters = {{"x", x}, {"w", {n, x.back()}}};
            if (bias)
              m.parameters.push_back({"b", {n}});
            x.back() = n;
            m.resultShape = x;
            m.code = line(std::string("%y = hydra.linear %x, %w") + (bias ? ", %b" : ""));
            return m;
          }};
}

OpCase matmul(bool ta, bool tb) {
  return {std::string("matmul") + (ta || tb ? "_" : "") + (ta ? "ta" : "") + (tb ? "tb" : ""),
          [=](Random &r) {
            SmallModel m;
            const int64_t rows = r.between(1, 5), inner = r.between(1, 5), cols = r.between(1, 5);
            Ints a = randomShape(r, 0, 2), b = a, c = a;
            a.insert(a.end(), {ta ? inner : rows, ta ? rows : inner});
            b.insert(b.end(), {tb ? cols : inner, tb ? inner : cols});
            c.insert(c.end(), {rows, cols});
            m.parameters = {{"a", a}, {"b", b}};
            m.resultShape = c;
            m.code = line(std::string("%y = hydra.matmul %a, %b") + (ta ? " transpose_a" : "") +
                          (tb ? " transpose_b" : ""));
            return m;
          }};
}

SmallModel embeddingModel(Random &r) {
  SmallModel m;
  const int64_t rows = r.between(1, 6), width = r.between(1, 5);
  const Ints tokens = randomShape(r, 1, 2);
  m.ids = {{"tokens", tokens, rows}};
  m.parameters = {{"table", {rows, width}}};
  m.resultShape = tokens;
  m.resultShape.push_back(width);
  m.code = line("%y = hydra.embedding %tokens, %table");
  return m;
}

/// Rows whose id is less than a limit, gathered and (perhaps) back.
SmallModel routingModel(Random &r) {
  SmallModel m;
  const int64_t rows = r.between(1, 7), width = r.between(1, 5), limit = r.between(0, 4);
  const bool back = r.chance(0.5);
  m.ids = {{"score", {rows}, 4}};
  m.parameters = {{"x", {rows, width}}, {"scale", {width}}};
  m.resultShape = {rows, width};
  m.code =
      line("%limit = hydra.constant value = " + std::to_string(limit) + " dtype = i32") +
      line("%mask = hydra.compare %score, %limit is = \"lt\"") +
      line("%index, %place, %count = hydra.compact %mask") +
      line("%some = hydra.take_rows %x, %index, %place") +
      line("%scaled = hydra.mul %some, %scale") +
      line(back ? "%y = hydra.take_rows %scaled, %place, %index" : "%y = hydra.add %scaled, %x");
  return m;
}

/// Rows in up to k of some groups; some are in none, some groups have none.
struct Groups {
  int64_t rows, groups, k;
};

Groups addGroups(SmallModel &m, Random &r) {
  Groups g{r.between(1, 7), r.between(1, 4), 1};
  g.k = r.between(1, g.groups);
  m.ids = {{"score", {g.rows, g.groups}, 4}};
  m.code =
      line("%limit = hydra.constant value = " + std::to_string(r.between(0, 4)) + " dtype = i32") +
      line("%mask = hydra.compare %score, %limit is = \"lt\"") +
      line("%index, %group, %place, %offsets = hydra.route %mask k = " + std::to_string(g.k));
  return g;
}

/// Sorted rows that are scaled and brought back, or some of a row's own among them.
SmallModel sortingModel(Random &r) {
  SmallModel m;
  const Groups g = addGroups(m, r);
  const int64_t width = r.between(1, 5);
  const bool back = r.chance(0.7);
  m.parameters = {{"x", {g.rows, width}}, {"scale", {g.groups, width}}};
  m.resultShape = {back ? g.rows : g.rows * g.k, width};
  m.code += line("%some = hydra.take_rows %x, %index, %place") +
            line("%own = hydra.embedding %group, %scale") +
            line(std::string(back ? "%scaled" : "%y") + " = hydra.mul %some, %own");
  if (back)
    m.code += line("%y = hydra.take_rows %scaled, %place, %index");
  return m;
}

SmallModel groupedLinearModel(Random &r, bool transposed) {
  SmallModel m;
  const Groups g = addGroups(m, r);
  const int64_t k = r.between(1, 5), n = r.between(1, 5);
  m.parameters = {{"x", {g.rows * g.k, k}},
                  {"w", {g.groups, transposed ? k : n, transposed ? n : k}}};
  m.resultShape = {g.rows * g.k, n};
  m.code += line(std::string("%y = hydra.grouped_linear %x, %w, %offsets") +
                 (transposed ? " transposed" : ""));
  return m;
}

SmallModel groupedOuterModel(Random &r) {
  SmallModel m;
  const Groups g = addGroups(m, r);
  const int64_t n = r.between(1, 5), k = r.between(1, 5);
  m.parameters = {{"a", {g.rows * g.k, n}}, {"b", {g.rows * g.k, k}}};
  m.resultShape = {g.groups, n, k};
  m.code += line("%y = hydra.grouped_outer %a, %b, %offsets");
  return m;
}

SmallModel rfftModel(Random &r) {
  Ints shape = randomShape(r, 1, 3);
  shape.back() = 2 * r.between(1, 6);
  Ints spectrum = shape;
  spectrum.back() = shape.back() / 2 + 1;
  spectrum.push_back(2);
  return onX(shape, "rfft", "", spectrum);
}

/// Of any numbers, and of a spectrum that has real ends.
SmallModel irfftModel(Random &r, bool realEnds) {
  Ints shape = randomShape(r, 1, 3);
  shape.back() = r.between(2, 7);
  Ints rows = shape;
  rows.back() = 2 * (shape.back() - 1);
  shape.push_back(2);
  if (!realEnds)
    return onX(shape, "irfft", "", rows);
  SmallModel m = onX(rows, "rfft", "", rows);
  m.code = line("%spectrum = hydra.rfft %x") + line("%act = hydra.tanh %spectrum") +
           line("%y = hydra.irfft %act real_ends");
  return m;
}

/// Rows that are one segment of the kernels, or several, of channels with up to more states than a warp
/// has lanes.
SmallModel recurrenceModel(Random &r, bool begins) {
  const int64_t batch = r.between(1, 3), tokens = r.pick<int64_t>({1, 2, 7, 33, 70}),
                channels = r.between(1, 5), states = r.pick<int64_t>({1, 2, 3, 5, 34});
  SmallModel m;
  m.resultShape = {batch, tokens, channels};
  const Ints terms = {channels, states};
  m.parameters = {{"x", m.resultShape},
                  {"q_re", terms, -0.7, 0.7},
                  {"q_im", terms, -0.7, 0.7},
                  {"c_re", terms},
                  {"c_im", terms}};
  if (begins)
    m.arguments = {{"begins", {batch, tokens, 1}}};
  m.code = line(std::string("%y = hydra.linear_recurrence %x, %q_re, %q_im, %c_re, %c_im") +
                (begins ? ", %begins" : ""));
  return m;
}

OpCase norm(const std::string &op, const std::string &operands) {
  return {op, [=](Random &r) {
            SmallModel m;
            m.resultShape = randomShape(r, 1, 3);
            m.resultShape.back() = r.between(1, 9);
            const Ints width = {m.resultShape.back()};
            m.parameters = {{"x", m.resultShape}, {"w", width, 0.5, 1.5}, {"b", width}};
            if (operands.find("%b") == std::string::npos)
              m.parameters.pop_back();
            m.code = line("%y = hydra." + op + " " + operands + " eps = 1.0e-2");
            return m;
          }};
}

OpCase rope(const std::string &form, const std::string &attributes) {
  return {"rope" + form, [=](Random &r) {
            Ints shape = randomShape(r, 4, 4);
            shape[3] = r.pick<int64_t>({2, 4, 6});
            return onX(shape, "rope", " base = 100.0" + attributes, shape);
          }};
}

/// Positions from `first` on, which may be outside of what there is; the operation limits them.
OpCase ropeAt(const std::string &form, const std::string &attributes, const std::string &first) {
  return {"rope" + form, [=](Random &r) {
            Ints shape = randomShape(r, 4, 4);
            shape[3] = r.pick<int64_t>({2, 4, 6});
            SmallModel m = onX(shape, "rope", ", %p base = 100.0" + attributes, shape);
            const Ints rows = {shape[0], shape[1]};
            m.code = line("%i = hydra.iota" + attribute("shape", rows) +
                          " axis = 1 dtype = f32 positions") +
                     line("%p = hydra.let %i + " + first) + m.code;
            return m;
          }};
}

/// Attention with as many keys as queries under a mask, or with any number without one.
OpCase attention(const std::string &form, const std::string &attributes) {
  return {"attention" + form, [=](Random &r) {
            SmallModel m;
            const int64_t batch = r.between(1, 2), queries = r.pick<int64_t>({1, 2, 3, 5, 7});
            const int64_t keys = attributes.empty() ? r.between(1, 6) : queries;
            const int64_t keyHeads = r.between(1, 2), ratio = r.between(1, 3);
            const int64_t width = r.between(1, 4), valueWidth = r.between(1, 4);
            m.parameters = {{"q", {batch, queries, keyHeads * ratio, width}, -2.0, 2.0},
                            {"k", {batch, keys, keyHeads, width}},
                            {"v", {batch, keys, keyHeads, valueWidth}}};
            m.resultShape = {batch, queries, keyHeads * ratio, valueWidth};
            m.code = line("%y = hydra.attention %q, %k, %v scale = 0.7" + attributes);
            return m;
          }};
}

OpCase crossEntropy(bool fused, double ignored, const std::string &form) {
  return {std::string(fused ? "linear_" : "") + "cross_entropy" + form, [=](Random &r) {
            SmallModel m;
            Ints rows = randomShape(r, 1, 2), x = rows;
            const int64_t classes = r.between(1, 7);
            m.ids = {{"labels", rows, classes, ignored}};
            x.push_back(fused ? r.between(1, 5) : classes);
            m.parameters = {{"x", x, -2.0, 2.0}};
            if (fused)
              m.parameters.push_back({"w", {classes, x.back()}});
            m.code = line(fused ? "%y = hydra.linear_cross_entropy %x, %w, %labels"
                                : "%y = hydra.cross_entropy %x, %labels");
            return m;
          }};
}

std::vector<OpCase> makeCases() {
  std::vector<OpCase> cases;
  for (const char *op : {"neg", "exp", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "gelu"})
    cases.push_back(elementwise(op, {"x"}, -3.0, 3.0));
  for (const char *op : {"log", "sqrt", "rsqrt"})
    cases.push_back(elementwise(op, {"x"}, 0.2, 3.0));
  for (const char *op : {"add", "sub", "mul", "max", "min"})
    cases.push_back(elementwise(op, {"a", "b"}, -2.0, 2.0));
  cases.push_back(elementwise("div", {"a", "b"}, 0.3, 2.0));
  cases.push_back({"select", [](Random &r) {
                     SmallModel m;
                     m.resultShape = randomShape(r, 0, 3);
                     m.parameters = {{"a", m.resultShape}, {"b", m.resultShape}};
                     m.arguments = {{"limit", m.resultShape}};
                     m.code = line("%c = hydra.compare %a, %limit is = \"lt\"") +
                              line("%y = hydra.select %c, %a, %b");
                     return m;
                   }});
  cases.push_back({"dropout", [](Random &r) {
                     SmallModel m;
                     m.resultShape = randomShape(r, 0, 3);
                     m.parameters = {{"x", m.resultShape}};
                     m.arguments = {{"a", m.resultShape}, {"limit", m.resultShape}};
                     m.code = line("%kept = hydra.compare %a, %limit is = \"lt\"") +
                              line("%y = hydra.dropout %x, %kept p = 0.25");
                     return m;
                   }});
  cases.push_back({"cast", [](Random &r) {
                     SmallModel m;
                     m.resultShape = randomShape(r, 0, 3);
                     m.parameters = {{"x", m.resultShape}};
                     m.code = line("%narrow = hydra.cast %x to = bf16") +
                              line("%act = hydra.silu %narrow") +
                              line("%y = hydra.cast %act to = f32");
                     return m;
                   }});
  for (const bool keep : {false, true})
    for (const char *op : {"sum", "mean", "reduce_max"})
      cases.push_back(reduction(op, keep));
  cases.push_back({"broadcast", broadcastModel});
  cases.push_back({"reshape", reshapeModel});
  cases.push_back({"transpose", transposeModel});
  cases.push_back({"slice", sliceModel});
  cases.push_back({"pad", padModel});
  cases.push_back({"concat", concatModel});
  for (const bool flag : {false, true}) {
    cases.push_back(linear(flag));
    cases.push_back(matmul(flag, false));
    cases.push_back(matmul(flag, true));
  }
  cases.push_back({"embedding", embeddingModel});
  cases.push_back({"routing", routingModel});
  cases.push_back({"sorting", sortingModel});
  for (const bool transposed : {false, true})
    cases.push_back({transposed ? "grouped_linear_transposed" : "grouped_linear",
                     [=](Random &r) { return groupedLinearModel(r, transposed); }});
  cases.push_back({"grouped_outer", groupedOuterModel});
  cases.push_back({"rfft", rfftModel});
  for (const bool realEnds : {false, true})
    cases.push_back({realEnds ? "irfft_real_ends" : "irfft",
                     [=](Random &r) { return irfftModel(r, realEnds); }});
  for (const bool begins : {false, true})
    cases.push_back({begins ? "linear_recurrence_begins" : "linear_recurrence",
                     [=](Random &r) { return recurrenceModel(r, begins); }});
  cases.push_back(norm("rms_norm", "%x, %w"));
  cases.push_back(norm("layer_norm", "%x, %w, %b"));
  cases.push_back({"softmax", [](Random &r) {
                     const Ints shape = randomShape(r, 1, 3);
                     return onX(shape, "softmax", "", shape);
                   }});
  cases.push_back({"copy", [](Random &r) {
                     const Ints shape = randomShape(r, 0, 3);
                     return onX(shape, "copy", "", shape);
                   }});
  cases.push_back(rope("", ""));
  cases.push_back(rope("_half_split", " half_split"));
  cases.push_back(rope("_inverse", " inverse"));
  cases.push_back(rope("_period", " period = 2"));
  cases.push_back(ropeAt("_positions", "", "7.0"));
  cases.push_back(ropeAt("_positions_all", " half_split inverse period = 5", "1.0e6"));
  cases.push_back(ropeAt("_positions_before", " half_split", "-2.0"));
  cases.push_back(rope("_all", " half_split inverse period = 3"));
  cases.push_back(attention("", ""));
  cases.push_back(attention("_causal", " causal"));
  cases.push_back(attention("_chunk", " causal chunk = 3"));
  cases.push_back(attention("_window", " causal window = 2"));
  cases.push_back(attention("_both", " causal chunk = 4 window = 2"));
  cases.push_back(attention("_cap", " cap = 0.8"));
  cases.push_back(attention("_cap_window", " cap = 1.5 causal window = 2"));
  for (const bool fused : {false, true}) {
    cases.push_back(crossEntropy(fused, 0.0, ""));
    cases.push_back(crossEntropy(fused, 0.4, "_ignored"));
    cases.push_back(crossEntropy(fused, 1.0, "_all_ignored"));
  }
  return cases;
}

} // namespace

const std::vector<OpCase> &opCases() {
  static const std::vector<OpCase> cases = makeCases();
  return cases;
}

} // namespace hydra::test
