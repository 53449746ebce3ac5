// Random small language models for whole training steps.
#include "test/support/HostileWriter.h"

#include <cmath>

namespace hydra::test::hostile {

namespace {

class Training {
public:
  Training(Writer &w, int64_t batch, int64_t seq)
      : w(w), batch("B", batch, batch, 2 * batch, 0), seq("S", seq, seq, seq, 0),
        classes(w.random.pick<int64_t>({2, 3, 5, 7, 13, 32})),
        width(w.random.pick<int64_t>({1, 2, 3, 4, 8, 16})) {}

  std::string write() {
    w.dims = "B, S";
    writeGroups();
    w.chooseFamilies(1.0, w.random.chance(0.3) ? 1.0 : 0.0);
    tokens = w.input({batch, seq}, Element::I32);
    w.blocks.front().values.back().final = classes - 1;
    table = w.parameter({Dim(classes), Dim(width)});
    Value start{.shape = {batch, seq, Dim(width)}, .size = table.size};
    start = w.emit("embedding", {tokens, table}, "", start);
    if (w.random.chance(0.2)) { // what comes with every row, such as a mask or another text
      const Value more = w.input(w.random.pick<Shape>({{batch},
                                                       {batch, seq},
                                                       {batch, seq, Dim(1)},
                                                       {batch, seq, Dim(width)},
                                                       {batch, Dim(3)}}));
      if (w.random.chance(0.7) && commonShape(more.shape, start.shape))
        start = w.binary(w.random.chance(0.5) ? "mul" : "add", start, more, 1.5);
    }
    if (w.random.chance(0.2)) // a number of the step
      start = w.binary("mul", start, w.stepNumber(), start.size);
    if (w.random.chance(0.2)) {
      Value dropped{.shape = start.shape, .size = 2.0 * start.size};
      start =
          w.emit("dropout", {start}, "p = " + w.random.pick<std::string>({"0.1", "0.5"}), dropped);
    }
    if (w.random.chance(0.25))
      start = padded(start);
    if (w.random.chance(0.25)) // a bias, or positions
      start =
          w.binary("add", start, w.make({w.random.chance(0.5) ? seq : Dim(1), Dim(width)}), 1.5);
    if (w.mostRank > 4)
      w.parameter(w.randomShape(w.mostRank - 2, w.mostRank));
    std::vector<Value> states;
    for (int64_t n = w.random.pick<int64_t>({0, 0, 0, 0, 1, 1, 2}); n > 0; --n)
      states.push_back(w.state(w.random.chance(0.6) ? Shape{} : Shape{Dim(width)}));
    const double draw = 0.5 * (w.random.uniform() + 1.0);
    w.fill(static_cast<unsigned>(draw < 0.5    ? w.random.between(4, 9)
                                 : draw < 0.85 ? w.random.between(10, 20)
                                               : w.random.between(21, 40)));
    Value loss = w.random.chance(0.15) ? w.loss() : head(start);
    if (w.random.chance(0.5)) { // of what nothing has used
      const Value more = w.loss();
      loss = w.binary("add", loss, w.binary("mul", more, w.constant(0.1), 0.1 * more.size), 3.0);
    }
    std::string updates;
    for (const Value &state : states)
      updates += (updates.empty() ? "" : ", ") + w.update(state);
    w.measures = w.random.chance(0.7);
    return w.model(w.ending(loss, updates));
  }

private:
  /// An optimizer, and settings of it before those that all have.
  std::string optimizer(bool ofMatrices) {
    const auto either = [&](const char *setting) {
      return std::string(setting) + (w.random.chance(0.5) ? " = true, " : " = false, ");
    };
    const std::string adam =
        w.random.pick<std::string>({"beta1 = 0.9, beta2 = 0.95, ", "beta1 = 0.9, beta2 = 0.95, ",
                                    "beta1 = 0.0, beta2 = 0.9, ", "beta1 = 0.5, beta2 = 0.999, "}) +
        "eps = " + w.random.pick<std::string>({"1.0e-8, ", "1.0e-8, ", "1.0e-3, "});
    switch (w.random.below(ofMatrices ? 10 : 9)) {
    case 0:
      return "sgd(";
    case 1:
      return "sgd(momentum = 0.9, " + either("nesterov");
    case 2:
      return "lion(beta1 = 0.9, beta2 = " + w.random.pick<std::string>({"0.99, ", "0.0, "});
    case 3:
      return "adafactor(decay = " + w.random.pick<std::string>({"0.8", "0.5"}) +
             ", threshold = " + w.random.pick<std::string>({"1.0, ", "0.1, "});
    case 4:
      return "adamw8bit(" + adam +
             "min_size = " + std::to_string(w.random.pick<int64_t>({1, 8, 4096})) + ", ";
    case 9:
      return "muon(steps = " + std::to_string(w.random.between(1, 5)) + ", " + either("nesterov") +
             either("match_adamw");
    default:
      return "adamw(" + adam;
    }
  }

  void writeGroups() {
    auto group = [&](const std::string &name, bool ofMatrices, const std::string &more) {
      w.groupLines += "  hydra.group @" + name + " " + optimizer(ofMatrices) + more + ")\n";
    };
    group("default", false, w.random.chance(0.5) ? "wd = 0.0" : "wd = 0.1");
    if (w.random.chance(0.5)) {
      group("slow", false, "wd = 0.01, lr_scale = 0.25");
      w.groups.push_back("slow");
    }
    if (w.random.chance(0.3)) {
      group("free", false, "wd = 0.0, lr_scale = " + w.random.pick<std::string>({"2.0", "0.0"}));
      w.groups.push_back("free");
    }
    if (w.random.chance(0.3)) {
      group("matrices", true, "wd = 0.01");
      w.matrixGroups.push_back("matrices");
    }
    w.mayFreeze = w.random.chance(0.2);
  }

  /// Rows of different lengths: what stands behind their ends counts in no loss, and perhaps
  /// neither where rows begin nor where their tokens look at each other.
  Value padded(Value x) {
    const Value lengths = labelsOf({batch}); // small numbers, of a part of the longest row
    const Value ends =
        w.binary("mul", w.reshape(lengths, {batch, Dim(1)}),
                 w.constant(static_cast<double>(w.random.between(1, 4)), {}, Element::I32), 0.0);
    counts = w.compare(w.iota({w.random.chance(0.5) ? batch : Dim(1), seq}, 1), ends, "lt");
    if (w.random.chance(0.4))
      x = w.emit("select", {w.reshape(*counts, {batch, seq, Dim(1)}), x, w.constant(0.0)}, "", x);
    return w.random.chance(0.5) ? w.binary("add", x, lookedAt(x), 2.0) : x;
  }

  /// Attention of heads to those tokens of their row that count.
  Value lookedAt(const Value &x) {
    const Dim heads(width % 2 == 0 && w.random.chance(0.5) ? 2 : 1), columns(width / heads.size);
    const auto part = [&] {
      const Value y = w.tame(w.linear(x, w.parameter({Dim(width), Dim(width)}), std::nullopt));
      return w.transpose(w.reshape(y, {batch, seq, heads, columns}), {0, 2, 1, 3});
    };
    const Value q = part(), k = part(), v = part();
    Value scores{.shape = {batch, heads, seq, seq}};
    scores.size = q.size * k.size * std::sqrt(static_cast<double>(columns.size));
    scores = w.emit("matmul", {q, k}, "transpose_b", scores);
    const auto mask = [&](const Value &seen) { // within no other operation's reach
      const Value low = w.emit("constant", {}, "value = -1.0e30", Value{});
      w.blocks.back().values.pop_back();
      scores = w.emit("select", {seen, scores, low}, "", scores);
      w.blocks.back().values.pop_back();
    };
    mask(w.reshape(*counts, {batch, Dim(1), Dim(1), seq}));
    if (w.random.chance(0.5))
      mask(w.compare(w.iota({seq, Dim(1)}, 0), w.iota({Dim(1), seq}, 1), "ge"));
    Value weights{.shape = scores.shape, .size = 0.3, .low = 0.0};
    weights = w.emit("softmax", {scores}, "", weights);
    Value y{.shape = q.shape, .size = v.size};
    y = w.emit("matmul", {weights, v}, "", y);
    return w.reshape(w.transpose(y, {0, 2, 1, 3}), x.shape);
  }

  Value labelsOf(const Shape &shape) {
    Value labels = w.input(shape, Element::I32);
    w.blocks.front().values.pop_back(); // ids of classes alone, not for other use
    return labels;
  }

  /// Some rows do not count.
  Value masked(const Value &labels) {
    if (counts && labels.shape == counts->shape && w.random.chance(0.8)) {
      Value result = labels;
      result.first = -100;
      return w.emit("select", {*counts, labels, w.constant(-100.0, {}, Element::I32)}, "", result);
    }
    if (!w.random.chance(0.3) || labels.rank() == 0)
      return labels;
    const Value chosen =
        w.compare(w.iota(labels.shape, w.random.below(static_cast<int64_t>(labels.rank()))),
                  w.constant(static_cast<double>(w.random.below(3)), {}, Element::I32),
                  w.random.pick<std::string>({"ge", "ne", "lt"}));
    Value result = labels;
    result.first = -100;
    return w.emit("select", {chosen, labels, w.constant(-100.0, {}, Element::I32)}, "", result);
  }

  Value crossEntropy(const Value &x, const Value &labels) {
    const Value target = masked(labels);
    Value result{.size = 2.0};
    Value weight = x.shape.back() == table.shape[1] && w.random.chance(0.4)
                       ? table
                       : w.make({Dim(classes), x.shape.back()});
    if (w.random.chance(0.6))
      return w.emit("linear_cross_entropy", {x, weight, target}, "", result);
    std::optional<Value> bias;
    if (w.random.chance(0.3))
      bias = w.make({Dim(classes)});
    const Value logits = w.tame(w.linear(x, weight, bias));
    return w.emit("cross_entropy", {logits, target}, "", result);
  }

  Value head(const Value &start) {
    std::optional<Value> found = w.find([&](const Value &v) {
      return v.element == Element::F32 && v.rank() == 3 && v.shape[0] == batch &&
             v.shape[1] == seq && v.shape[2].isNumber() && v.shape[2].size <= 64;
    });
    const Value x = w.tame(found ? *found : start);
    const Shape rows = {batch, seq};
    switch (w.random.below(5)) {
    case 0: { // one label for a whole text
      std::string op = w.random.pick<std::string>({"sum", "mean", "mean", "reduce_max"});
      if (op == "reduce_max" && !x.hasClearOrder())
        op = "sum";
      return crossEntropy(w.tame(w.reduce(op, x, {false, true, false}, false)), labelsOf({batch}));
    }
    case 1: { // rows one behind the other
      const Dim all = product(batch, seq);
      return crossEntropy(w.reshape(x, {all, x.shape[2]}), w.reshape(labelsOf(rows), {all}));
    }
    case 2:
      if (seq.size > 1) { // the next token
        const Dim less("S - 1", seq.size - 1, seq.size - 1, seq.size - 1, 0);
        Value front = x, next = tokens;
        front.shape[1] = next.shape[1] = less;
        front = w.emit("slice", {x}, "axis = 1 start = 0 size = S - 1", front);
        next = w.emit("slice", {tokens}, "axis = 1 start = 1 size = S - 1", next);
        return crossEntropy(front, next);
      }
      [[fallthrough]];
    default:
      return crossEntropy(x, labelsOf(rows));
    }
  }

  Writer &w;
  Dim batch, seq;
  int64_t classes, width;
  Value tokens, table;
  std::optional<Value> counts; ///< [B, S]: which tokens are no padding
};

} // namespace

std::string trainingModel(Writer &w, int64_t &batch, int64_t &seq) {
  batch = w.random.pick<int64_t>({1, 1, 2, 3, 4, 6});
  seq = w.random.pick<int64_t>({1, 2, 3, 5, 8, 9, 16, 17, 32});
  return Training(w, batch, seq).write();
}

} // namespace hydra::test::hostile
