// Gemma 2, with caps on scores and logits, and the text model of Gemma 3, with norms of queries and
// keys and other rotary positions where attention slides.
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

#include "runtime/support/Error.h"

#include <algorithm>

namespace hydra::frontend {

static void readGemma(Config &config, Architecture &a) {
  readSizes(config, a, /*tied=*/true);
  if (!config.has("num_key_value_heads"))
    config.reject("num_key_value_heads", "a number of heads");
  readPadding(config, a, 0);
  a.headWidth = config.integer("head_dim", 1, 256);
  a.eps = config.positive("rms_norm_eps", 1.0e-6);
  a.activation = readActivation(config, "hidden_activation", "gelu_pytorch_tanh");
  config.findText("hidden_act"); // of older files; the other one counts
  a.projectionBias = a.outBias = config.flag("attention_bias", false);
  a.queryScale = config.positive("query_pre_attn_scalar", 256.0);
  if (config.json().contains("sliding_window") && !config.has("sliding_window"))
    config.reject("sliding_window", "a window");
  a.window = config.integer("sliding_window", 1, 4096);
  if (config.integer("sliding_window_size", 1, a.window) != a.window) // of older files
    config.reject("sliding_window_size", fmt::format("sliding_window, {}", a.window));
  config.wantFlag("use_bidirectional_attention", false);
  a.normAddsOne = true;
  a.embeddingScale = 0;
  a.block = BlockForm::Sandwich;
  const std::string layer = "model.layers.{layer}.";
  a.names = llamaNames();
  a.names.postNorm1 = layer + "post_attention_layernorm";
  a.names.norm2 = layer + "pre_feedforward_layernorm";
  a.names.postNorm2 = layer + "post_feedforward_layernorm";
  a.prefix = "model.";
  a.buffers = {".rotary_emb.inv_freq"};
}

/// Every `pattern`-th layer sees everything, the others slide.
static void slideBetween(Architecture &a, int64_t pattern) {
  for (int64_t layer = 0; layer < a.layers && a.window > 0; ++layer)
    a.slides.push_back((layer + 1) % pattern != 0);
}

static std::optional<double> readCap(Config &config, std::string_view field,
                                     std::optional<double> otherwise) {
  const bool given = config.json().contains(field); // null: none
  const std::optional<double> cap = config.findPositive(field);
  return given ? cap : otherwise;
}

Architecture readGemma2(Config &config) {
  Architecture a;
  a.family = "gemma2";
  a.title =
      "norms around attention and MLP, caps on scores and logits, a window in every other layer";
  readGemma(config, a);
  if (!readLayerTypes(config, a))
    slideBetween(a, 2);
  a.scoreCap = readCap(config, "attn_logit_softcapping", 50.0);
  a.logitCap = readCap(config, "final_logit_softcapping", 30.0);
  a.rotary = readRotary(config, a.headWidth, config.integer("max_position_embeddings", 1, 8192));
  return a;
}

/// Those of layers that see everything, and of those that slide. `rope_parameters` may have an
/// object for each kind; in the older form the second have a base of their own and no scaling.
static void readTwoRotaries(Config &config, Architecture &a, int64_t maxPositions) {
  Rotary local;
  local.base = config.positive("rope_local_base_freq", 1.0e4);
  local.width = a.headWidth;
  std::optional<Config> both = config.findObject("rope_parameters");
  if (!both || !both->has("full_attention")) {
    a.rotary = readRotary(config, a.headWidth, maxPositions, {.defaultBase = 1.0e6});
    a.localRotary = local;
    return;
  }
  Rotary global;
  global.base = config.positive("rope_theta", 1.0e6);
  if (config.has("rope_scaling"))
    config.reject("rope_scaling", "only one of rope_scaling and rope_parameters");
  const std::optional<Config> full = both->findObject("full_attention"),
                              slides = both->findObject("sliding_attention");
  both->finish("rotary positions");
  if (!slides)
    both->reject("sliding_attention", "an object");
  a.rotary = readRotaryObject(*full, global, a.headWidth, maxPositions, 1.0);
  a.localRotary = readRotaryObject(*slides, local, a.headWidth, maxPositions, 1.0);
  wantWholeHeads(*full, *a.rotary, a.headWidth);
  wantWholeHeads(*slides, *a.localRotary, a.headWidth);
}

Architecture readGemma3(Config &config) {
  Architecture a;
  a.family = "gemma3";
  a.title = "norms around attention and MLP and of queries and keys, a window in most layers";
  readGemma(config, a);
  const int64_t pattern =
      config.integer("sliding_window_pattern", 1, config.integer("_sliding_window_pattern", 1, 6));
  if (!readLayerTypes(config, a))
    slideBetween(a, pattern);
  if (config.has("attn_logit_softcapping")) // the field is there, and no attention reads it
    config.reject("attn_logit_softcapping", "null: transformers does not cap scores of Gemma 3");
  constexpr std::string_view unread[] = {"attn_logit_softcapping"};
  config.ignore(unread);
  a.logitCap = readCap(config, "final_logit_softcapping", std::nullopt);
  readTwoRotaries(config, a, config.integer("max_position_embeddings", 1, 131072));
  const bool allSlide = a.window > 0 && std::ranges::find(a.slides, false) == a.slides.end();
  if (allSlide)
    a.rotary = a.localRotary;
  if (allSlide || a.window == 0)
    a.localRotary.reset();
  a.headNorm = HeadNorm::EachHead;
  a.names.qNorm = "model.layers.{layer}.self_attn.q_norm";
  a.names.kNorm = "model.layers.{layer}.self_attn.k_norm";
  return a;
}

} // namespace hydra::frontend
