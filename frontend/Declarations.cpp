// Symbols with the numbers of an architecture, and its parameters with the names that files give
// them.
#include "frontend/Declarations.h"

#include "frontend/ModelWords.h"
#include "frontend/Text.h"

#include <fmt/format.h>

#include <array>

namespace hydra::frontend {

namespace {

using Rows = std::vector<std::vector<std::string>>;

class Declarations {
public:
  explicit Declarations(const Architecture &a) : a(a), words(a) {}

  std::string text(std::string_view preset) {
    collectSymbols();
    std::vector<std::string> names, values;
    for (const auto &[name, value] : dims) {
      names.push_back(name);
      values.push_back(fmt::format("{} = {}", name, value));
    }
    std::string text = fmt::format("  hydra.symbols dims({})", joined(names));
    for (const std::vector<std::string> &line : reals)
      if (!line.empty())
        text += fmt::format("{}reals({})", &line == &reals.front() ? " " : "\n                ",
                            joined(line));
    text += fmt::format(
        "\n                reals(beta1 = 0.9, beta2 = 0.95, adam_eps = 1.0e-8, wd = 0.1)\n{}",
        derived());
    text += fmt::format("\n  hydra.preset {} {{{}}}\n", symbolText(preset), joined(values));
    text +=
        "\n  hydra.group @default adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)\n\n";
    return text + parameters();
  }

private:
  void collectSymbols() {
    dims = {{"D", a.hidden}, {"F", a.inner}, {"L", a.layers}, {"H", a.heads}};
    if (words.groups())
      dims.emplace_back("Hk", a.keyHeads);
    if (words.ownWidth())
      dims.emplace_back("hd", a.headWidth);
    if (words.partialRotary())
      dims.emplace_back("R", a.rotary->width);
    if (a.positions > 0)
      dims.emplace_back("P", a.positions);
    if (a.window > 0)
      dims.emplace_back("W", a.window);
    if (a.experts > 0) {
      dims.emplace_back("E", a.experts);
      dims.emplace_back("K", a.chosen);
    }
    dims.emplace_back("V", a.vocabulary);

    auto real = [&](std::vector<std::string> &line, const std::string &name, double value) {
      line.push_back(fmt::format("{} = {}", name, realText(value)));
    };
    for (const RotaryWords &rotary : words.rotaries())
      real(reals[0], rotary.named("rope"), rotary.r.base);
    real(reals[0], "eps", a.eps);
    if (a.queryScale > 0 && a.queryScale != 1.0)
      real(reals[0], "query", a.queryScale);
    if (a.scoreCap)
      real(reals[0], "score_cap", *a.scoreCap);
    if (a.logitCap)
      real(reals[0], "logit_cap", *a.logitCap);
    for (const RotaryWords &rotary : words.rotaries())
      collectScaling(rotary, real);
  }

  template <typename Real> void collectScaling(const RotaryWords &rotary, Real real) {
    using enum Rotary::Scaling;
    const Rotary &r = rotary.r;
    if (r.scaling == None)
      return;
    auto number = [&](const char *name, double value) {
      real(reals[1], rotary.named(name), value);
    };
    if (r.scaling != LongRope)
      number("factor", r.factor);
    if (r.scaling == Llama3) {
      number("low", r.low);
      number("high", r.high);
    }
    if (r.scaling == Yarn) {
      number("fast", r.fast);
      number("slow", r.slow);
    }
    if (r.scaling == Yarn || r.scaling == LongRope)
      number("sharpness", r.attention);
    if (r.scaling != Linear)
      dims.emplace_back(rotary.named("trained"), r.original);
  }

  std::string derived() const {
    Rows rows;
    auto derive = [&](const std::string &name, const std::string &value, const char *what) {
      rows.push_back({"hydra.derive", name + " = " + value, std::string("// ") + what});
    };
    if (!words.ownWidth())
      derive("hd", "D / H", "width of a head");
    if (words.ownWidth())
      derive("Dq", "H * hd", "width of all heads");
    if (words.groups())
      derive("Dk", "Hk * hd", "width of all key heads");
    for (const RotaryWords &rotary : words.rotaries()) {
      if (rotary.r.scaling != Rotary::Scaling::Yarn)
        continue;
      // The pair that turns so often within the positions of training.
      auto pair = [&](const char *turns) {
        return fmt::format("{} * log({} / ({} * 6.283185307179586)) / (2.0 * log({}))",
                           words.turned(), rotary.named("trained"), rotary.named(turns),
                           rotary.named("rope"));
      };
      const char *down = rotary.r.truncate ? "floor" : "", *up = rotary.r.truncate ? "ceil" : "";
      derive(rotary.named("first"), fmt::format("max(real({}({})), 0.0)", down, pair("fast")),
             "pair from which on it turns slower");
      derive(rotary.named("last"),
             fmt::format("min(real({}({})), {} - 1.0)", up, pair("slow"), words.turned()),
             ("pair that turns slower by " + rotary.named("factor")).c_str());
    }
    return table(rows, "  ");
  }

  //===-- Parameters ------------------------------------------------------------------------===//

  void add(Rows &rows, const std::string &name, const std::string &shape, const std::string &init,
           const std::string &origin, const char *ending, bool transposed = false) const {
    rows.push_back(
        {"hydra.param", "@" + name, "[" + shape + "]", "init = " + init,
         fmt::format("from \"{}.{}\"{}", origin, ending, transposed ? " transposed" : "")});
  }

  void addNorm(Rows &rows, const std::string &name, const std::string &width,
               const std::string &origin) const {
    if (origin.empty())
      return;
    add(rows, name, width, a.normAddsOne ? "zeros" : "ones", origin, "weight");
    if (a.norm == NormKind::Layer)
      add(rows, name + "_b", width, "zeros", origin, "bias");
  }

  void addMatrix(Rows &rows, const std::string &name, const std::string &out, const std::string &in,
                 const std::string &origin, bool bias) const {
    if (origin.empty())
      return;
    add(rows, name, out + ", " + in, fmt::format("normal({})", realText(a.initStd)), origin,
        "weight", a.transposed);
    if (bias)
      add(rows, name + "_b", out, "zeros", origin, "bias");
  }

  void addTable(Rows &rows, const std::string &name, const std::string &shape,
                const std::string &origin) const {
    add(rows, name, shape, fmt::format("normal({})", realText(a.initStd)), origin, "weight");
  }

  std::string stackedRows() const {
    return words.groups() ? fmt::format("{} + 2 * {}", words.queries(), words.keys())
                          : fmt::format("3 * {}", words.queries());
  }

  std::string parameters() const {
    const Names &n = a.names;
    Rows first, layer, last;
    addTable(first, "tok_emb", "V, D", n.embedding);
    if (a.positions > 0)
      addTable(first, "pos_emb", "P, D", n.positions);
    addNorm(layer, "norm1", "D", n.norm1);
    if (a.projections == Projections::Separate) {
      addMatrix(layer, "wq", words.queries(), "D", n.q, a.projectionBias);
      addMatrix(layer, "wk", words.keys(), "D", n.k, a.projectionBias);
      addMatrix(layer, "wv", words.keys(), "D", n.v, a.projectionBias);
    } else {
      addMatrix(layer, "qkv", stackedRows(), "D", n.qkv, a.projectionBias);
    }
    const bool each = a.headNorm == HeadNorm::EachHead;
    addNorm(layer, "q_norm", each ? "hd" : words.queries(), n.qNorm);
    addNorm(layer, "k_norm", each ? "hd" : words.keys(), n.kNorm);
    addMatrix(layer, "wo", "D", words.queries(), n.out, a.outBias);
    addNorm(layer, "post1", "D", n.postNorm1);
    addNorm(layer, "norm2", "D", n.norm2);
    addMatrix(layer, "router", "E", "D", n.router, false);
    const std::string experts = a.experts > 0 ? "E, " : "";
    if (a.fusedGate) {
      addMatrix(layer, "gate_up", "2 * F", "D", n.gateUp, a.mlpBias);
    } else {
      if (a.gated)
        addMatrix(layer, "gate", experts + "F", "D", n.gate, a.mlpBias);
      addMatrix(layer, "up", experts + "F", "D", n.up, a.mlpBias);
    }
    addMatrix(layer, "down", experts + "D", "F", n.down, a.mlpBias);
    addNorm(layer, "post2", "D", n.postNorm2);
    addNorm(last, "norm", "D", n.norm);
    if (!a.tied)
      addTable(last, "lm_head", "V, D", n.head);
    return table(first, "  ") + "  hydra.stack @layers[L] {\n" + table(layer, "    ") + "  }\n" +
           table(last, "  ");
  }

  const Architecture &a;
  const ModelWords words;
  std::vector<std::pair<std::string, int64_t>> dims;
  std::array<std::vector<std::string>, 2> reals; ///< a line each
};

} // namespace

std::string declarations(const Architecture &architecture, std::string_view preset) {
  return Declarations(architecture).text(preset);
}

} // namespace hydra::frontend
