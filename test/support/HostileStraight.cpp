// Programs of random operations, one behind the other: what they start from, and how they end.
#include "test/support/HostileWriter.h"

namespace hydra::test::hostile {

/// Half of all programs are small: these find most, and are read soonest.
static unsigned someSize(Random &random) {
  const double draw = 0.5 * (random.uniform() + 1.0);
  return static_cast<unsigned>(draw < 0.5    ? random.between(3, 8)
                               : draw < 0.85 ? random.between(9, 20)
                                             : random.between(21, 40));
}

/// Ids below the number of rows of a table, and rows of that table.
static void startTokens(Writer &w) {
  const Shape shape = w.randomShape(1, 2);
  const int64_t rows = w.random.pick<int64_t>({1, 2, 5, 13}),
                width = w.random.pick<int64_t>({1, 4, 7});
  Value tokens = w.input(shape, Element::I32);
  w.blocks.front().values.back().final = rows - 1;
  if (elementsOf(shape) * width > kMostElements) // only so many
    tokens = w.slice(tokens, 0, 0, 1);
  Value result{.shape = tokens.shape, .size = 1.0};
  result.shape.push_back(Dim(width));
  w.emit("embedding", {tokens, w.parameter({Dim(rows), Dim(width)})}, "", result);
}

std::string straightModel(Writer &w, bool scans) {
  w.chooseFamilies(w.random.chance(0.4) ? 1.0 : 0.0, scans ? 3.0 : 0.0);
  for (int64_t n = w.random.between(1, 3); n > 0; --n)
    if (w.random.chance(0.85))
      w.parameter(w.randomShape(0, w.mostRank));
    else
      w.input(w.randomShape(0, w.mostRank));
  if (w.random.chance(0.12))
    startTokens(w);
  if (w.random.chance(0.08))
    w.unary("sin", w.stepNumber(), 0.7); // a number that nothing reads is no argument
  std::optional<Value> state;
  if (w.random.chance(0.08))
    state = w.state(w.randomShape(0, 2));
  if (scans)
    w.scan();
  w.fill(someSize(w.random));
  const Value loss = w.loss();
  return w.model(w.ending(loss, state ? w.update(*state) : ""));
}

} // namespace hydra::test::hostile
