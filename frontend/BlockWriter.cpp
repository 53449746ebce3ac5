// One layer, feature by feature.
#include "frontend/BlockWriter.h"

#include "frontend/LayerPattern.h"
#include "frontend/RotaryWriter.h"
#include "frontend/Text.h"

#include <fmt/format.h>

#include <algorithm>

namespace hydra::frontend {

std::string normed(const ModelWords &words, const std::string &value, const std::string &weight) {
  if (words.a.norm == NormKind::Layer)
    return fmt::format("layer_norm({0}, @{1}, @{1}_b, eps = eps)", value, weight);
  return fmt::format("rms_norm({}, {}@{}, eps = eps)", value, words.a.normAddsOne ? "1.0 + " : "",
                     weight);
}

namespace {

class Block {
public:
  explicit Block(const ModelWords &words) : words(words), a(words.a) {
    if (!words.hasLayerKinds())
      return;
    std::vector<bool> full = a.slides;
    full.flip();
    // All of one kind is no pattern.
    if (std::find(full.begin(), full.end(), true) != full.end())
      fullLayers = layerCondition(full);
  }

  std::string body() {
    line("hydra.section @attn");
    const bool before = a.block != BlockForm::PostNorm,
               after = a.block == BlockForm::PostNorm || a.block == BlockForm::Sandwich;
    if (before)
      let("%n", normed(words, "%x", "norm1"));
    projections(before ? "%n" : "%x");
    attention();
    const std::string mixed = ModelWords::linear(
        fmt::format("reshape(%heads, [B, S, {}])", words.queries()), "wo", a.outBias);
    if (a.block == BlockForm::Parallel) {
      let("%mixed", mixed);
      mlp("%x", "%x + %mixed");
      return text;
    }
    if (after) {
      let("%mixed", mixed);
      let("%y", "%x + " + normed(words, "%mixed", "post1"));
    } else {
      let("%y", "%x + " + mixed);
    }
    mlp("%y", "%y");
    return text;
  }

private:
  void line(const std::string &content) { text += "      " + content + "\n"; }
  void let(const std::string &names, const std::string &values) {
    line(fmt::format("{} = hydra.let {}", names, values));
  }

  /// One of two values, as the layer has a window or not.
  void choose(const std::string &name, const std::string &full, const std::string &window) {
    const std::string start = fmt::format("{} = hydra.let when(", name), indent(start.size(), ' ');
    line(fmt::format("{}{},", start, fullLayers));
    line(indent + full + ",");
    line(indent + window + ")");
  }

  /// `%q1, %k1 [B, S, H, hd]` and `%v`; the names with a number go on.
  void projections(const std::string &x) {
    const std::string heads = "[B, S, H, hd]",
                      keyHeads = fmt::format("[B, S, {}, hd]", words.keyHeads());
    if (a.projections == Projections::PerHead) {
      let("%qkv", fmt::format("reshape({}, [B, S, H, 3 * hd])",
                              ModelWords::linear(x, "qkv", a.projectionBias)));
      line("%q1 = hydra.slice %qkv axis = 3 start = 0 size = hd");
      line("%k1 = hydra.slice %qkv axis = 3 start = hd size = hd");
      line("%v = hydra.slice %qkv axis = 3 start = 2 * hd size = hd");
      return;
    }
    if (a.projections == Projections::Stacked) {
      const std::string q = words.queries(), k = words.keys();
      let("%qkv", ModelWords::linear(x, "qkv", a.projectionBias));
      line(fmt::format("%q0 = hydra.slice %qkv axis = 2 start = 0 size = {}", q));
      line(fmt::format("%k0 = hydra.slice %qkv axis = 2 start = {} size = {}", q, k));
      line(fmt::format("%v0 = hydra.slice %qkv axis = 2 start = {} size = {}",
                       q == k ? "2 * " + q : q + " + " + k, k));
    } else {
      let("%q0, %k0, %v0", joined({ModelWords::linear(x, "wq", a.projectionBias),
                                   ModelWords::linear(x, "wk", a.projectionBias),
                                   ModelWords::linear(x, "wv", a.projectionBias)}));
    }
    std::string q = "%q0", k = "%k0";
    if (a.headNorm == HeadNorm::AllHeads) {
      let("%qn, %kn", joined({normed(words, q, "q_norm"), normed(words, k, "k_norm")}));
      q = "%qn";
      k = "%kn";
    }
    let("%q1, %k1", fmt::format("reshape({}, {}), reshape({}, {})", q, heads, k, keyHeads));
    let("%v", fmt::format("reshape(%v0, {})", keyHeads));
  }

  void attention() {
    std::string q = "%q1", k = "%k1";
    if (a.headNorm == HeadNorm::EachHead) {
      let("%qn, %kn", joined({normed(words, q, "q_norm"), normed(words, k, "k_norm")}));
      q = "%qn";
      k = "%kn";
    }
    if (!fullLayers.empty())
      line("// Some layers see everything, the others a window.");
    if (a.rotary) {
      if (a.localRotary) {
        choose("%q", turned(words, q, false), turned(words, q, true));
        choose("%k", turned(words, k, false), turned(words, k, true));
      } else {
        let("%q, %k", joined({turned(words, q, false), turned(words, k, false)}));
      }
      q = "%q";
      k = "%k";
    }
    const bool windows = a.window > 0;
    if (windows && !fullLayers.empty()) {
      choose("%heads", attend(q, k, false), attend(q, k, true));
    } else {
      line(fmt::format("%heads = hydra.attention {}, {}, %v scale = {}{} causal{}", q, k, scale(),
                       a.scoreCap ? " cap = score_cap" : "", windows ? " window = W" : ""));
    }
  }

  std::string attend(const std::string &q, const std::string &k, bool windows) const {
    return fmt::format("attention({}, {}, %v, scale = {}{}, causal{})", q, k, scale(),
                       a.scoreCap ? ", cap = score_cap" : "", windows ? ", window = W" : "");
  }

  std::string scale() const {
    const std::string root = a.queryScale == 0     ? "sqrt(hd)"
                             : a.queryScale == 1.0 ? ""
                                                   : "sqrt(query)";
    if (a.scaleByLayer)
      return root.empty() ? "1.0 / (layer + 1)" : "1 / (" + root + " * (layer + 1))";
    return root.empty() ? "1.0" : "1 / " + root;
  }

  std::string activated(const std::string &x) const {
    switch (a.activation) {
    case Activation::Silu:
      return "silu(" + x + ")";
    case Activation::GeluTanh:
      return "gelu(" + x + ")";
    case Activation::Gelu:
      return "@erf_gelu(" + x + ")";
    case Activation::GeluClipped:
      return "min(@erf_gelu(" + x + "), 10.0)";
    case Activation::QuickGelu:
      return "@quick_gelu(" + x + ")";
    case Activation::Relu: // of a tie, the gradient goes to the first
      return "max(0.0, " + x + ")";
    case Activation::Relu2:
      return "@relu2(" + x + ")";
    case Activation::Relu6:
      return "min(6.0, max(0.0, " + x + "))";
    case Activation::LeakyRelu:
      return "@leaky_relu(" + x + ")";
    case Activation::Sigmoid:
      return "sigmoid(" + x + ")";
    case Activation::Tanh:
      return "tanh(" + x + ")";
    case Activation::Linear:
      return x;
    }
    return x;
  }

  /// Adds what experts make of `m`, as `reshape(%experts, …)`: each token has those K to which the
  /// router gives the largest shares, weighed by these. Rows are sorted by experts; a row's weight
  /// multiplies what goes into the last matrix.
  void experts(const std::string &m) {
    let("%rows", fmt::format("reshape({}, [B * S, D])", m));
    let("%shares", "softmax(linear(%rows, @router))");
    line("%chosen = hydra.top_k %shares k = K");
    let("%kept", "select(%chosen, %shares, 0.0)");
    let("%weights", "%kept / sum(%kept, 1)");
    line("%index, %group, %place, %offsets = hydra.route %chosen k = K");
    let("%sorted, %shared",
        "take_rows(%rows, %index, %place), take_rows(%weights, %index, %place)");
    let("%is", "reshape(%group, [B * S * K, 1]) == iota(shape = [1, E], axis = 1)");
    let("%gate, %up",
        "grouped_linear(%sorted, @gate, %offsets), grouped_linear(%sorted, @up, %offsets)");
    let("%inner", activated("%gate") + " * %up * sum(select(%is, %shared, 0.0), 1)");
    let("%experts", "take_rows(grouped_linear(%inner, @down, %offsets), %place, %index)");
  }

  /// Adds the MLP of `x` to `sum` and yields.
  void mlp(const std::string &x, const std::string &sum) {
    text += "\n";
    if (a.experts > 0) {
      line("hydra.section @mlp // experts: each token has K of E");
      let("%m", normed(words, x, "norm2"));
      experts("%m");
      let("%z", fmt::format("{} + reshape(%experts, [B, S, D])", sum));
      line("hydra.yield %z");
      return;
    }
    line("hydra.section @mlp");
    const bool before = a.block != BlockForm::PostNorm;
    const bool after = a.block == BlockForm::PostNorm || a.block == BlockForm::Sandwich;
    if (before)
      let("%m", normed(words, x, "norm2"));
    const std::string m = before ? "%m" : x;
    std::string inner;
    if (a.fusedGate) {
      let("%gate_up", ModelWords::linear(m, "gate_up", a.mlpBias));
      line("%gate = hydra.slice %gate_up axis = 2 start = 0 size = F");
      line("%up = hydra.slice %gate_up axis = 2 start = F size = F");
    } else if (a.gated) {
      let("%gate, %up", joined({ModelWords::linear(m, "gate", a.mlpBias),
                                ModelWords::linear(m, "up", a.mlpBias)}));
    }
    inner =
        a.gated ? activated("%gate") + " * %up" : activated(ModelWords::linear(m, "up", a.mlpBias));
    const std::string result = ModelWords::linear(inner, "down", a.mlpBias);
    if (after) {
      let("%out", result);
      let("%z", fmt::format("{} + {}", sum, normed(words, "%out", "post2")));
    } else {
      let("%z", fmt::format("{} + {}", sum, result));
    }
    line("hydra.yield %z");
  }

  const ModelWords &words;
  const Architecture &a;
  std::string fullLayers; ///< the condition for layers without window; empty: all are alike
  std::string text;
};

} // namespace

std::string blockDefinitions(const ModelWords &words) {
  switch (words.a.activation) {
  case Activation::Gelu:
  case Activation::GeluClipped:
    return "\n  // GELU by the error function; the operation `gelu` is its form by tanh.\n"
           "  hydra.def @erf_gelu(%u) = %u * 0.5 * (1.0 + erf(%u * (1 / sqrt(2.0))))\n";
  case Activation::QuickGelu:
    return "\n  // GELU by the logistic function.\n"
           "  hydra.def @quick_gelu(%u) = %u * sigmoid(%u * 1.702)\n";
  case Activation::Relu2:
    return "\n  // The square of what is positive.\n"
           "  hydra.def @relu2(%u) = max(0.0, %u) * max(0.0, %u)\n";
  case Activation::LeakyRelu:
    return "\n  // A hundredth of what is negative.\n"
           "  hydra.def @leaky_relu(%u) = max(%u * 0.01, %u)\n";
  case Activation::Silu:
  case Activation::GeluTanh:
  case Activation::Relu:
  case Activation::Relu6:
  case Activation::Sigmoid:
  case Activation::Tanh:
  case Activation::Linear:
    return "";
  }
  return "";
}

std::string blockBody(const ModelWords &words) { return Block(words).body(); }

} // namespace hydra::frontend
