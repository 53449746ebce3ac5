// Transformers, part by part.
#include "test/support/RandomTransformer.h"

#include "test/support/Random.h"

#include <fmt/format.h>

#include <algorithm>

namespace hydra::test {

namespace {

class Transformer {
public:
  explicit Transformer(uint64_t seed) : random(seed), forText(readsOn(seed)) {
    hd = random.pick<int64_t>({32, 64, 64, 64, 128});
    heads = random.pick<int64_t>({1, 2, 2, 4});
    keyHeads = heads % 2 == 0 && random.chance(0.4) ? heads / 2 : heads;
    width = random.chance(0.7) ? heads * hd : random.pick<int64_t>({64, 128, 192});
    inner = random.pick<int64_t>({64, 128, 192, 256});
    layers = random.between(1, 3);
    classes = random.pick<int64_t>({64, 97, 128, 256});
    batch = random.pick<int64_t>({1, 2, 2, 4, 6});
    seq = random.pick<int64_t>({16, 32, 64, 64, 100, 128});
    while (batch * seq * std::max(width, heads * hd) > kMostNumbers)
      seq /= 2;
  }

  BoundText write() {
    parameter("norm1", "[D]", "ones");
    parameter("wq", "[H * hd, D]");
    parameter("wk", "[Hk * hd, D]");
    parameter("wv", "[Hk * hd, D]");
    parameter("wo", "[D, H * hd]");
    const bool hasExperts = random.chance(0.25);
    const std::string attention = attentionLines(),
                      behind = hasExperts ? expertLines() : layerLines(), updates = optimizer(),
                      start = dropped("embedding(%tokens, @e)");
    BoundText result;
    result.binding.batch = batch;
    if (!forText)
      result.binding.seq = seq;
    const bool tied = random.chance(0.3);
    result.text =
        fmt::format("hydra.model @m version 1 {{\n"
                    "  hydra.symbols dims(D = {}, L = {}, H = {}, Hk = {}, hd = {}, V = {}{})\n",
                    width, layers, heads, keyHeads, hd, classes,
                    hasExperts ? "" : fmt::format(", F = {}", inner)) +
        (forText ? "" : "  hydra.group @default " + updates + "\n") +
        "  hydra.param @e [V, D] init = normal(0.5)\n  hydra.param @norm [D] init = ones\n" +
        (tied ? "" : "  hydra.param @head [V, D] init = normal(0.1)\n") +
        "  hydra.stack @layers[L] {\n" + parameters + "  }\n" +
        "  hydra.def @trunk(%tokens) {\n"
        "    %start = hydra.let " +
        start + "\n" + "    %end = hydra.for @layers carry(%x = %start) {\n" + attention + behind +
        "      hydra.yield %z\n    }\n"
        "    %final = hydra.let " +
        norm("%end", "@norm") + "\n    hydra.yield %final\n  }\n" + entry(tied ? "@e" : "@head") +
        "}\n";
    return result;
  }

private:
  static constexpr int64_t kMostNumbers = 1 << 16; ///< of a value of all tokens

  void parameter(const std::string &name, const std::string &shape,
                 const std::string &init = "normal(0.1)") {
    parameters += fmt::format("    hydra.param @{} {} init = {}\n", name, shape, init);
  }

  std::string optimizer() {
    return random.pick<std::string>(
        {"adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.1)",
         "adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)",
         "sgd(momentum = 0.9, nesterov = true, wd = 0.01)", "sgd(wd = 0.0)",
         "lion(beta1 = 0.9, beta2 = 0.99, wd = 0.1)",
         "adafactor(decay = 0.8, threshold = 1.0, wd = 0.0)",
         "adamw8bit(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, min_size = 64, wd = 0.1)"});
  }

  std::string dropped(const std::string &value) {
    return random.chance(0.1) ? "dropout(" + value + ", p = 0.1)" : value;
  }

  std::string norm(const std::string &value, const std::string &weight) {
    return fmt::format("rms_norm({}, {}, eps = 1.0e-5)", value, weight);
  }

  /// Queries or keys as heads, perhaps normed and rotated.
  std::string headLines(const std::string &name, const std::string &count, const std::string &form,
                        bool normed) {
    std::string value = fmt::format("reshape(linear(%n, @w{}), [B, S, {}, hd])", name, count);
    if (normed) {
      parameter("norm_" + name, "[hd]", "ones");
      value = norm(value, "@norm_" + name);
    }
    if (!form.empty())
      value = fmt::format("rope({}, base = 1000.0{})", value, form == "pairs" ? "" : ", " + form);
    return fmt::format("      %{} = hydra.let {}\n", name, value);
  }

  std::string attentionLines() {
    const std::string form =
        random.pick<std::string>({"", "pairs", "half_split", "half_split", "period = 9"});
    const bool normed = random.chance(0.3);
    std::string mask = random.pick<std::string>({"", "", ", window = 20", ", chunk = 24"});
    if (random.chance(0.2))
      mask += ", cap = 30.0";
    return "      %n = hydra.let " + norm("%x", "@norm1") + "\n" +
           headLines("q", "H", form, normed) + headLines("k", "Hk", form, normed) +
           "      %v = hydra.let reshape(linear(%n, @wv), [B, S, Hk, hd])\n"
           "      %heads = hydra.let attention(%q, %k, %v, scale = 1 / sqrt(hd), causal" +
           mask +
           ")\n"
           "      %y = hydra.let %x + " +
           dropped("linear(reshape(%heads, [B, S, H * hd]), @wo)") + "\n";
  }

  /// One hidden row, or a product of two, between matrices that perhaps have biases.
  std::string layerLines() {
    const std::string f = random.pick<std::string>({"gelu", "silu", "tanh"});
    const bool gated = random.chance(0.5), bias = random.chance(0.3);
    parameter("norm2", "[D]", "ones");
    parameter("up", "[F, D]");
    parameter("down", "[D, F]");
    if (bias)
      parameter("up_bias", "[F]", "zeros");
    const std::string up = bias ? "linear(%m, @up, @up_bias)" : "linear(%m, @up)";
    if (gated)
      parameter("gate", "[F, D]");
    const std::string hidden =
        gated ? fmt::format("{}(linear(%m, @gate)) * {}", f, up) : fmt::format("{}({})", f, up);
    return "      %m = hydra.let " + norm("%y", "@norm2") + "\n      %z = hydra.let %y + " +
           dropped(fmt::format("linear({}, @down)", hidden)) + "\n";
  }

  /// Experts by the token's number, which no rounding moves.
  std::string expertLines() {
    parameter("norm2", "[D]", "ones");
    parameter("experts", "[4, D, D]");
    const int64_t chosen = random.between(1, 2), apart = random.between(5, 20);
    return fmt::format(
        "      %m = hydra.let reshape({}, [B * S, D])\n"
        "      %mask = hydra.let reshape(%tokens, [B * S, 1]) >= iota(axis = 1, shape = [B * S, 4])"
        " * {}\n"
        "      %index, %group, %place, %offsets = hydra.route %mask k = {}\n"
        "      %rows = hydra.let take_rows(%m, %index, %place)\n"
        "      %out = hydra.let gelu(grouped_linear(%rows, @experts, %offsets))\n"
        "      %z = hydra.let %y + reshape(take_rows(%out, %place, %index), [B, S, D])\n",
        norm("%y", "@norm2"), apart, chosen);
  }

  std::string entry(const std::string &head) {
    if (forText)
      return "  hydra.entry @logits(%tokens: [B, S] i32) dims(B, S) {\n"
             "    %logits = hydra.let linear(@trunk(%tokens), " +
             head +
             ")\n"
             "    hydra.return logits = %logits\n  }\n";
    const std::string loss =
        random.chance(0.7)
            ? fmt::format("linear_cross_entropy(@trunk(%tokens), {}, %labels)", head)
            : fmt::format("cross_entropy(linear(@trunk(%tokens), {}), %labels)", head);
    return "  hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {\n"
           "    %loss = hydra.let " +
           loss + "\n    hydra.return loss = %loss\n  }\n";
  }

  Random random;
  const bool forText;
  int64_t hd, heads, keyHeads, width, inner, layers, classes, batch, seq;
  std::string parameters; ///< of a layer
};

} // namespace

bool readsOn(uint64_t seed) { return seed % 3 == 2; }

BoundText randomTransformer(uint64_t seed) { return Transformer(seed).write(); }

} // namespace hydra::test
