// Random loops over layers, conditions, and definitions with their calls.
#include "test/support/HostileWriter.h"

namespace hydra::test::hostile {

bool Writer::layering() {
  if (block().stack >= 0)
    return false;
  const int64_t layers = random.pick<int64_t>({1, 2, 2, 3});
  const int stack = static_cast<int>(stacks.size());
  const std::string name = "stack" + std::to_string(stack);
  stacks.push_back({name, layers, ""});
  std::vector<Value> sequences, inits, inside;
  for (int64_t more = random.pick<int64_t>({0, 0, 1, 2}); more > 0; --more) {
    std::optional<Value> s = find([&](const Value &v) {
      return v.element != Element::I1 && v.rank() > 0 && v.shape[0] == Dim(layers);
    });
    if (!s || random.chance(0.4)) {
      Shape shape = randomShape(0, 2);
      shape.insert(shape.begin(), Dim(layers));
      if (elementsOf(shape) > kMostElements)
        continue;
      s = make(shape);
    }
    sequences.push_back(*s);
  }
  for (int64_t more = random.pick<int64_t>({0, 1, 1, 1, 2}); more > 0; --more)
    inits.push_back(tame(any()));
  auto pairs = [&](const char *prefix, const std::vector<Value> &values, bool rows) {
    std::vector<Value> parts;
    for (const Value &v : values) {
      Value part{.name = fresh(prefix), .shape = v.shape, .element = v.element};
      part.size = rows ? v.size : std::max(1.5, v.size);
      part.first = rows ? v.first : -1000000;
      part.final = rows ? v.final : 1000000;
      if (rows)
        part.shape.erase(part.shape.begin());
      parts.push_back(part);
    }
    inside.insert(inside.end(), parts.begin(), parts.end());
    return parts;
  };
  const std::vector<Value> rows = pairs("r", sequences, true), carried = pairs("h", inits, false);
  const Passed over = passed(rows, sequences), carry = passed(carried, inits);
  open(inside);
  block().stack = stack;
  fieldsOf(over.bundle, rows);
  fieldsOf(carry.bundle, carried);
  steps(random.between(1, 5));
  std::vector<Value> yielded, results;
  for (int64_t more = inits.empty() ? 1 : random.pick<int64_t>({0, 0, 1, 2}); more > 0; --more)
    if (std::optional<Value> y = find([&](const Value &v) {
          return v.element != Element::I1 && v.rank() <= mostRank &&
                 v.count() * layers <= kMostElements;
        })) {
      Value result = *y;
      result.shape.insert(result.shape.begin(), Dim(layers));
      result.repeatable = result.distinct = false;
      yielded.push_back(*y);
      results.push_back(result);
    }
  std::vector<Value> next, ends = carried;
  for (const Value &value : carried)
    next.push_back(stepBetween(value, layers));
  const bool together = !carry.bundle.empty();
  const std::string yields = listOf(yielded, next, together ? bundleOf(next) : "");
  const std::string body = close();
  for (std::vector<Value> *list : {&results, &ends})
    for (Value &r : *list)
      r.name = fresh("v");
  const std::string end = together ? fresh("b") : "", all = listOf(results, ends, end);
  line((all.empty() ? "" : all + " = ") + "hydra.for @" + name +
       (over.list.empty() ? "" : " over(" + over.list + ")") +
       (carry.list.empty() ? "" : " carry(" + carry.list + ")") + " {");
  block().text += body;
  line("  hydra.yield" + (yields.empty() ? "" : " " + yields));
  line("}");
  fieldsOf(end, ends);
  results.insert(results.end(), ends.begin(), ends.end());
  for (const Value &r : results)
    remember(r);
  return true;
}

std::string Writer::condition() {
  if (block().stack >= 0 && random.chance(0.7))
    return random.pick<std::string>({"layer >= 1", "layer == 0", "layer < 1", "not layer == 1"});
  const std::string name = fresh("on");
  symbolLines +=
      "  hydra.symbols flags(" + name + " = " + (random.chance(0.5) ? "true" : "false") + ")\n";
  return (random.chance(0.3) ? "not " : "") + name;
}

bool Writer::conditions() {
  const std::string when = condition();
  std::vector<Value> likes, results;
  for (int64_t n = random.between(1, 2); n > 0; --n)
    likes.push_back(any());
  for (const Value &like : likes) {
    Value result{.name = fresh("v"), .shape = like.shape, .element = like.element};
    result.size = std::max(like.size, 2.0);
    results.push_back(result);
  }
  auto branch = [&](bool plain) {
    open({});
    block().isWhen = true;
    if (!plain)
      steps(random.between(1, 3));
    std::vector<Value> yielded;
    for (const Value &like : likes) {
      const std::optional<Value> same = find([&](const Value &v) {
        return v.shape == like.shape && v.element == like.element && v.size <= 4.0;
      });
      yielded.push_back(plain                        ? like
                        : same && random.chance(0.8) ? *same
                                                     : unary("sin", like, 0.8));
    }
    line("hydra.yield " + nameList(yielded));
    return close();
  };
  const std::string yes = branch(random.chance(0.1)), no = branch(random.chance(0.5));
  line(nameList(results) + " = hydra.when " + when + " {");
  block().text += yes;
  line("} else {");
  block().text += no;
  line("}");
  for (const Value &r : results)
    remember(r);
  return true;
}

bool Writer::calling() {
  if (!canHaveInputs())
    return false;
  auto call = [&](const Callable &callable) {
    std::vector<Value> operands, results = callable.results;
    for (const Value &a : callable.arguments) {
      const std::optional<Value> x = find([&](const Value &v) {
        return v.shape == a.shape && v.element == a.element && v.size <= 4.0 &&
               (v.isFloat() || (v.first >= a.first && v.final <= a.final));
      });
      if (!x)
        return false;
      operands.push_back(*x);
    }
    for (Value &r : results) {
      r.name = fresh("v");
      r.repeatable = r.distinct = false;
    }
    line(nameList(results) + " = hydra.call @" + callable.name + "(" + nameList(operands) + ")");
    for (const Value &r : results)
      remember(r);
    return true;
  };
  if (!callables.empty() && random.chance(0.5))
    return call(random.pick(callables));
  Callable callable;
  callable.name = fresh("part");
  for (int64_t n = random.between(1, 2); n > 0; --n) {
    Value like = tame(any());
    for (const Dim &d : like.shape)
      if (d.scan > 0)
        return false;
    like.name = fresh("a");
    like.low = -std::numeric_limits<double>::infinity();
    like.repeatable = like.distinct = false;
    like.size = std::max(like.size, 1.0);
    callable.arguments.push_back(like);
  }
  open(callable.arguments);
  block().isolated = true;
  block().stack = -1;
  block().scan = 0;
  steps(random.between(1, 4));
  for (int64_t n = random.between(1, 2); n > 0; --n)
    callable.results.push_back(any());
  line("hydra.yield " + nameList(callable.results));
  definitionLines += "  hydra.def @" + callable.name + "(" + nameList(callable.arguments) +
                     ") {\n" + close() + "  }\n";
  callables.push_back(callable);
  if (!call(callables.back())) { // what it was made for is larger now, or behind a scan
    std::vector<Value> operands;
    for (const Value &a : callable.arguments)
      operands.push_back(make(a.shape, a.element));
    std::vector<Value> results = callable.results;
    for (Value &r : results) {
      r.name = fresh("v");
      r.repeatable = r.distinct = false;
    }
    line(nameList(results) + " = hydra.call @" + callable.name + "(" + nameList(operands) + ")");
    for (const Value &r : results)
      remember(r);
  }
  return true;
}

} // namespace hydra::test::hostile
