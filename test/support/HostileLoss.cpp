// Losses of every kind, most of them without weights, and what else an entry returns.
#include "test/support/HostileWriter.h"

#include <algorithm>
#include <cctype>

namespace hydra::test::hostile {

Value Writer::lossTerm(const Value &value) {
  Value x = tame(value);
  if (x.element == Element::Narrow)
    x = cast(x, Element::F32);
  const double draw = 0.5 * (random.uniform() + 1.0);
  if (draw < 0.4)
    return tame(toScalar(x));
  if (draw < 0.55)
    return tame(toScalar(unary(random.chance(0.7) ? "sin" : "tanh", x, 0.7)));
  if (draw < 0.63)
    return tame(toScalar(binary("mul", x, x, x.size * x.size)));
  if (draw < 0.73) {
    const std::optional<Value> y = find([&](const Value &v) {
      std::optional<Shape> shape = commonShape(x.shape, v.shape);
      return v.element == Element::F32 && v.size <= 4.0 && shape &&
             elementsOf(*shape) <= kMostElements;
    });
    if (y)
      return tame(toScalar(binary("mul", x, *y, x.size * y->size)));
  }
  if (draw < 0.88 && allNumbers(x.shape)) // every element has a weight of its own
    return tame(toScalar(binary("mul", x, input(x.shape), x.size)));
  if (draw < 0.93 && canWrite(x.shape) && x.rank() > 0) {
    const Value i = iota(x.shape, random.below(static_cast<int64_t>(x.rank())), Element::F32);
    return tame(toScalar(binary("mul", x, i, x.size * i.size)));
  }
  if (allNumbers(x.shape)) { // one element
    for (size_t i = 0; i < x.rank(); ++i)
      if (!x.shape[i].isOne())
        x = slice(x, i, random.below(x.shape[i].size), 1);
    return x.rank() ? reshape(x, {}) : x;
  }
  return tame(toScalar(x));
}

/// How often a value's name stands in a text.
static int64_t occurrences(const std::string &text, const std::string &name) {
  int64_t found = 0;
  const std::string word = "%" + name;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    found += !std::isalnum(
        static_cast<unsigned char>(text[std::min(at + word.size(), text.size() - 1)]));
  return found;
}

Value Writer::loss() {
  std::vector<Value> all, leaves;
  for (const Value &v : visible())
    if (v.isFloat()) {
      all.push_back(v);
      if (occurrences(block().text, v.name) < 2)
        leaves.push_back(v);
    }
  if (all.empty())
    all.push_back(parameter(randomShape(0, 3)));
  std::optional<Value> loss;
  int64_t terms = random.pick<int64_t>({1, 1, 2, 3, 4, 6});
  while (terms-- > 0) {
    const std::vector<Value> &from = leaves.empty() || random.chance(0.15) ? all : leaves;
    // The last value mostly counts, so that something does that was computed.
    const size_t i = !loss && random.chance(0.7)
                         ? from.size() - 1
                         : static_cast<size_t>(random.below(static_cast<int64_t>(from.size())));
    const Value chosen = from[i];
    if (&from == &leaves)
      leaves.erase(leaves.begin() + static_cast<int64_t>(i));
    const Value term = lossTerm(chosen);
    if (!loss)
      loss = term;
    else if (random.chance(0.2))
      loss = tame(binary("mul", *loss, term, loss->size * term.size));
    else
      loss = tame(binary(random.chance(0.8) ? "add" : "sub", *loss, term, loss->size + term.size));
  }
  if (random.chance(0.1))
    loss = unary(random.pick<std::string>({"sin", "neg", "sigmoid", "tanh"}), tame(*loss), 1.0);
  return *loss;
}

std::string Writer::ending(const Value &loss, const std::string &updates) {
  std::string text = "hydra.return loss = %" + loss.name;
  if (random.chance(0.4))
    for (int64_t n = random.between(1, 3), i = 0; i < n; ++i) {
      const std::optional<Value> v =
          find([&](const Value &x) { return x.isFloat() || random.chance(0.3); });
      if (v)
        text += ", r" + std::to_string(i) + " = %" + v->name;
    }
  return text + (updates.empty() ? "" : " updates(" + updates + ")");
}

Value Writer::state(const Shape &shape) {
  const std::string name = fresh("state");
  variableLines += "  hydra.state @" + name + " " + textOf(shape) +
                   " init = " + random.pick<std::string>({"zeros", "ones", "constant(0.5)"}) + "\n";
  Value value{.name = name, .shape = shape, .size = 1.0};
  value.repeatable = true;
  line("%" + name + " = hydra.use @" + name);
  remember(value);
  return value;
}

Value Writer::stepNumber() {
  Value number{.name = fresh("x"), .size = 0.75};
  arguments.push_back("%" + number.name + ": [] f32 = 0.75");
  number.repeatable = number.distinct = true;
  remember(number);
  return number;
}

std::string Writer::update(const Value &state) {
  std::optional<Value> next = find([&](const Value &v) {
    return v.shape == state.shape && v.element == state.element && v.size <= 4.0 &&
           v.name != state.name;
  });
  if (!next || random.chance(0.4)) {
    const Value news = tame(toScalar(tame(any())));
    const Value old = binary("mul", state, constant(0.9), state.size);
    next = binary("add", old, news.element == Element::F32 ? news : cast(news, Element::F32),
                  1.0 + news.size);
  }
  return "@" + state.name + " = %" + next->name;
}

} // namespace hydra::test::hostile
