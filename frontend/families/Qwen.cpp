// Qwen 2 and 2.5, whose q, k and v have biases, and Qwen 3, which norms each head of q and k.
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

namespace hydra::frontend {

/// The last layers slide, from number `max_window_layers` on, where sliding is switched on at all.
static void readWindow(Config &config, Architecture &a) {
  const bool slides = config.flag("use_sliding_window", false);
  const int64_t window =
      config.integer("sliding_window", 1, config.json().contains("sliding_window") ? 0 : 4096);
  const int64_t first = config.integer("max_window_layers", 0, 28);
  a.window = slides ? window : 0;
  if (readLayerTypes(config, a) || a.window == 0)
    return;
  for (int64_t layer = 0; layer < a.layers; ++layer)
    a.slides.push_back(layer >= first);
  if (first >= a.layers)
    a.window = 0;
}

static void readQwen(Config &config, Architecture &a) {
  readSizes(config, a, /*tied=*/false);
  if (!config.has("num_key_value_heads"))
    config.reject("num_key_value_heads", "a number of heads");
  readPadding(config, a);
  a.eps = config.positive("rms_norm_eps", 1.0e-6);
  a.activation = readActivation(config, "hidden_act", "silu");
  config.wantFlag("use_mrope", false);
  readWindow(config, a);
  a.names = llamaNames();
  a.prefix = "model.";
  a.buffers = {".rotary_emb.inv_freq"};
}

Architecture readQwen2(Config &config) {
  Architecture a;
  a.family = "qwen2";
  a.title =
      "a pre-norm decoder with grouped heads, biases on q, k and v, rotary positions and SwiGLU";
  readQwen(config, a);
  readHeadWidth(config, a);
  a.rotary = readRotary(config, a.headWidth, config.integer("max_position_embeddings", 1, 32768));
  a.projectionBias = true;
  return a;
}

Architecture readQwen3(Config &config) {
  Architecture a;
  a.family = "qwen3";
  a.title = "a pre-norm decoder with grouped heads, norms of each query and key, rotary positions "
            "and SwiGLU";
  readQwen(config, a);
  a.headWidth = config.integer("head_dim", 1, 128);
  a.rotary = readRotary(config, a.headWidth, config.integer("max_position_embeddings", 1, 32768));
  a.projectionBias = a.outBias = config.flag("attention_bias", false);
  a.headNorm = HeadNorm::EachHead;
  a.names.qNorm = "model.layers.{layer}.self_attn.q_norm";
  a.names.kNorm = "model.layers.{layer}.self_attn.k_norm";
  return a;
}

} // namespace hydra::frontend
