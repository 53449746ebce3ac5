// Random models: symbols, control flow, and the loss around random operations.
#include "test/support/RandomProgram.h"

#include "test/support/RandomOps.h"

#include "llvm/ADT/StringSet.h"

namespace hydra::test {

namespace {

class Generator {
public:
  Generator(uint64_t seed, int64_t batch)
      : random(seed), freezing(~seed), ops(model, random), givenBatch(batch) {}

  RandomProgram run(unsigned size) {
    chooseSymbols();
    ops.scope.code = &model.code;
    start();
    for (unsigned i = 0; i < size; ++i)
      write(/*depth=*/0);
    finish();
    const int64_t batch = ops.sizes["B"], seq = ops.sizes["S"];
    return {printTemplate(model, batch, seq), printFlat(model, batch, seq)};
  }

private:
  //===-- Symbols ---------------------------------------------------------------------------===//

  void symbol(const std::string &kind, const std::string &name, const std::string &value,
              const std::string &other, const std::string &options = "") {
    Symbol s{kind,  name,
             value, random.pick<Given>({Given::Default, Given::Preset, Given::Setting}),
             "",    options};
    // A choice always has a default in front of its options.
    if (!options.empty() || random.chance(0.5))
      s.other = other;
    model.symbols.push_back(s);
  }

  void size(const std::string &name, const std::vector<int64_t> &values) {
    const int64_t value = random.pick(values);
    ops.sizes[name] = value;
    symbol("dims", name, std::to_string(value), std::to_string(random.between(1, 9)));
  }

  void chooseSymbols() {
    ops.sizes["B"] = random.pick<int64_t>({1, 1, 2, 3});
    if (givenBatch)
      ops.sizes["B"] = givenBatch;
    ops.sizes["S"] = random.pick<int64_t>({1, 3, 5, 5, 7, 8});
    size("G", {1, 2, 3});
    size("Hk", {1, 2});
    size("hd", {2, 2, 4});
    size("F", {3, 5, 6});
    size("V", {5, 7, 11});
    size("L", {1, 2, 3});
    size("C", {1, 2, 3});
    size("W", {1, 2, 4});
    ops.sizes["H"] = ops.sizes["G"] * ops.sizes["Hk"];
    ops.sizes["D"] = ops.sizes["H"] * ops.sizes["hd"];
    model.derived = {{"H", "G * Hk"}, {"D", "H * hd"}};
    symbol("reals", "small", "0.05", "0.5");
    symbol("reals", "rope", "1.0e4", "50.0");
    symbol("reals", "decay", "0.1", "0");
    gated = random.chance(0.5);
    symbol("flags", "gated", gated ? "true" : "false", gated ? "false" : "true");
    soft = random.chance(0.5);
    symbol("choices", "mix", soft ? "soft" : "hard", soft ? "hard" : "soft", " of (soft, hard)");
    model.groups = {
        "hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = decay)",
        "hydra.group @slow adamw(beta1 = 0.8, beta2 = 0.99, eps = 1.0e-4, wd = 0.0, "
        "lr_scale = 0.25)"};
  }

  Condition condition() {
    const int64_t layers = ops.scope.stack ? ops.scope.stack->count.size : 0;
    if (layers && random.chance(0.6)) {
      if (layers > 1 && random.chance(0.5))
        return {"layer >= 1", true, [](int64_t layer) { return layer >= 1; }};
      if (random.chance(0.5))
        return {"layer < 1", true, [](int64_t layer) { return layer < 1; }};
      const std::string last = ops.scope.stack->count.text + " - 1";
      return {"layer == " + last, true, [layers](int64_t layer) { return layer == layers - 1; }};
    }
    switch (random.below(3)) {
    case 0:
      return {"gated", false, [value = gated](int64_t) { return value; }};
    case 1:
      return {"mix == soft", false, [value = soft](int64_t) { return value; }};
    default:
      return {"D > 2 * F and gated", false,
              [value = gated && ops.sizes["D"] > 2 * ops.sizes["F"]](int64_t) { return value; }};
    }
  }

  //===-- Code ------------------------------------------------------------------------------===//

  Dim dim(const std::string &name) { return {name, ops.sizes.at(name)}; }

  void argument(const std::string &name, const Shape &shape, const std::string &dtype) {
    model.arguments.push_back({name, shape, dtype});
  }

  void start() {
    const Shape rows = {dim("B"), dim("S")};
    argument("tokens", rows, "i32");
    argument("labels", rows, "i32");
    Shape wide = rows;
    wide.push_back(dim(random.chance(0.7) ? "D" : "F"));
    argument("noise", wide, "f32");
    ops.remember({"noise", wide, 0.6});
    kept = ops.remember(ops.parameter({wide.back()})).name;
    keptParameter = model.variables.back().name;
    if (random.chance(0.5))
      ops.remember(ops.parameter({dim("F"), dim("D")}));
    if (random.chance(0.5)) {
      Variable v;
      v.isState = true;
      v.name = "average";
      v.shape = {wide.back()};
      v.init = "constant(0.5)";
      model.variables.push_back(v);
      Statement use;
      use.op = "use";
      use.symbol = v.name;
      use.results = {ops.freshName("s")};
      state = Operand{use.results[0], v.shape, 0.6};
      ops.remember(*state);
      ops.add(use);
    }
  }

  void write(unsigned depth) {
    const double draw = 0.5 * (random.uniform() + 1.0);
    if (depth < 2 && draw < 0.08)
      writeLoop(depth);
    else if (depth < 2 && draw < 0.17)
      writeWhen(depth);
    else if (depth == 0 && draw < 0.21)
      writeDefinition();
    else if (draw < 0.26 && writeCall())
      return;
    else
      ops.step();
  }

  /// The code that `fill` writes into a block of its own, which sees what is in reach and `more`.
  template <typename Fill>
  Code block(const std::vector<Operand> &more, const Condition &when, Fill fill) {
    OpWriter::Scope outer = ops.scope;
    Code code;
    ops.scope.code = &code;
    ops.scope.values.insert(ops.scope.values.end(), more.begin(), more.end());
    ops.scope.condition = outer.condition && when;
    fill();
    ops.scope = std::move(outer);
    return code;
  }

  void yield(const std::vector<std::string> &values) {
    Statement s;
    s.op = "yield";
    s.operands = values;
    ops.add(s);
  }

  /// `x` plus a number from most values of the current block that nothing in it has used.
  Operand gather(Operand x, size_t outside) {
    llvm::StringSet<> used;
    collectUsed(*ops.scope.code, used);
    used.insert(x.name);
    const std::vector<Operand> values(ops.scope.values.begin() + static_cast<int64_t>(outside),
                                      ops.scope.values.end());
    for (const Operand &v : values)
      if (!used.contains(v.name) && random.chance(0.8)) {
        const Operand small = ops.tame(v);
        const Operand square = ops.binary("mul", small, small, small.size * small.size);
        x = ops.binary("add", x, ops.reduceAll(square), x.size + square.size);
      }
    return ops.tame(x);
  }

  void writeLoop(unsigned depth) {
    if (ops.scope.stack)
      return ops.step();
    Stack &stack = model.stacks.emplace_back();
    stack.name = ops.freshName("layers");
    stack.count = random.chance(0.7) ? dim("L") : Dim{"2", 2};
    Statement loop;
    loop.op = "for";
    loop.symbol = stack.name;
    std::vector<Operand> inside, after;
    for (int64_t n = random.between(1, 2); n > 0; --n) {
      const Operand init = ops.any();
      loop.operands.push_back(init.name);
      loop.arguments.push_back(ops.freshName("a"));
      loop.results.push_back(ops.freshName("v"));
      inside.push_back({loop.arguments.back(), init.shape, std::max(1.0, init.size)});
      after.push_back({loop.results.back(), init.shape, 1.0});
    }
    loop.body = block(inside, {}, [&] {
      const size_t outside = ops.scope.values.size();
      ops.scope.stack = &stack;
      for (int64_t n = random.between(2, 4); n > 0; --n)
        write(depth + 1);
      std::vector<std::string> values;
      for (const Operand &x : inside) {
        const Operand more = gather(ops.ofShape(x.shape), outside);
        const Operand sum = ops.binary("add", x, more, 2.0);
        values.push_back(ops.unary("tanh", sum, 1.0).name);
      }
      yield(values);
    });
    ops.add(std::move(loop));
    for (const Operand &x : after)
      ops.remember(x);
  }

  void writeWhen(unsigned depth) {
    if (!ops.scope.condition.text.empty())
      return ops.step();
    const Operand like = ops.any();
    Statement when;
    when.op = "when";
    when.condition = condition();
    when.results = {ops.freshName("v")};
    auto branch = [&](bool plain) {
      return [&, plain] {
        if (plain)
          return yield({like.name});
        const size_t outside = ops.scope.values.size();
        for (int64_t n = random.between(1, 3); n > 0; --n)
          write(depth + 1);
        yield({gather(ops.ofShape(like.shape), outside).name});
      };
    };
    when.body = block({}, when.condition, branch(false));
    when.otherwise = block({}, !when.condition, branch(random.chance(0.5)));
    Operand result{when.results[0], like.shape, std::max(2.0, like.size)};
    ops.add(std::move(when));
    ops.remember(ops.tame(result));
  }

  struct Callable {
    std::string name;
    std::vector<Shape> arguments;
    std::vector<Operand> results;
  };

  /// A definition and its first call, so that all its parameters are used in every configuration.
  void writeDefinition() {
    Definition definition;
    definition.name = ops.freshName("part");
    Callable callable{definition.name, {}, {}};
    std::vector<Operand> arguments;
    for (int64_t n = random.between(1, 2); n > 0; --n) {
      const Operand like = ops.any();
      definition.arguments.push_back(ops.freshName("a"));
      arguments.push_back({definition.arguments.back(), like.shape, std::max(1.0, like.size)});
      callable.arguments.push_back(like.shape);
    }
    OpWriter::Scope outer = ops.scope;
    ops.scope = {};
    ops.scope.inEntry = false;
    definition.body = block(arguments, {}, [&] {
      const size_t outside = ops.scope.values.size();
      for (int64_t n = random.between(2, 5); n > 0; --n)
        write(/*depth=*/1);
      std::vector<std::string> values;
      for (int64_t n = random.between(1, 2); n > 0; --n) {
        callable.results.push_back(gather(ops.any(), outside));
        values.push_back(callable.results.back().name);
      }
      yield(values);
    });
    ops.scope = std::move(outer);
    model.definitions.push_back(std::move(definition));
    callables.push_back(callable);
    call(callables.back());
  }

  bool call(const Callable &callable) {
    Statement s;
    s.op = "call";
    s.symbol = callable.name;
    for (const Shape &shape : callable.arguments) {
      const std::optional<Operand> x = ops.find([&](const Operand &v) { return v.shape == shape; });
      if (!x)
        return false;
      s.operands.push_back(x->name);
    }
    std::vector<Operand> results = callable.results;
    for (Operand &r : results) {
      r.name = ops.freshName("v");
      s.results.push_back(r.name);
    }
    ops.add(std::move(s));
    for (const Operand &r : results)
      ops.remember(r);
    return true;
  }

  bool writeCall() {
    return ops.scope.inEntry && !callables.empty() && call(random.pick(callables));
  }

  //===-- The end ---------------------------------------------------------------------------===//

  static void collectUsed(const Code &code, llvm::StringSet<> &used) {
    for (const Statement &s : code) {
      for (const std::string &name : s.operands)
        used.insert(name);
      collectUsed(s.body, used);
      collectUsed(s.otherwise, used);
    }
  }

  /// A scalar in which every element of `x` has a weight of its own.
  Operand weighted(const Operand &x) {
    if (x.shape.empty())
      return x;
    const std::string name = ops.freshName("m");
    argument(name, x.shape, "f32");
    return ops.reduceAll(ops.binary("mul", x, {name, x.shape, 0.6}, x.size));
  }

  /// In some programs a part of the parameters is frozen, but one that is in the loss.
  void freeze() {
    if (!freezing.chance(0.3))
      return;
    const double share = freezing.pick<double>({0.2, 0.5, 0.9});
    auto choose = [&](std::vector<Variable> &variables) {
      for (Variable &v : variables)
        v.frozen = !v.isState && v.name != keptParameter && freezing.chance(share);
    };
    choose(model.variables);
    for (Stack &stack : model.stacks)
      choose(stack.variables);
  }

  void finish() {
    // Most values that nothing has used go into the loss; the rest are dead code, and what only
    // they use are parameters without gradient.
    llvm::StringSet<> used;
    collectUsed(model.code, used);
    const std::vector<Operand> values = ops.scope.values;
    std::optional<Operand> loss;
    for (const Operand &x : values) {
      const bool leaf = !used.contains(x.name) && random.chance(0.85);
      if (!leaf && x.name != kept && !random.chance(0.05))
        continue;
      const Operand term = weighted(x);
      loss = loss ? ops.binary(random.chance(0.8) ? "add" : "sub", *loss, term, 1.0) : term;
    }
    freeze();
    model.outputs = {{"loss", loss->name}};
    if (random.chance(0.5))
      model.outputs.push_back({"probe", random.pick(values).name});
    if (!state)
      return;
    const Operand old = ops.binary("mul", *state, ops.constant(0.9), 0.6);
    const Operand next = ops.binary("add", old, ops.ofShape(state->shape), 1.0);
    model.updates = {{"average", next.name}};
  }

  ModelText model;
  Random random, freezing; ///< which does not change the rest of a program
  OpWriter ops;
  int64_t givenBatch; ///< 0: drawn
  std::vector<Callable> callables;
  std::optional<Operand> state;
  std::string kept, keptParameter; ///< a parameter that always is in the loss
  bool gated = false, soft = false;
};

} // namespace

RandomProgram randomProgram(uint64_t seed, unsigned size, int64_t batch) {
  return Generator(seed, batch).run(size);
}

} // namespace hydra::test
