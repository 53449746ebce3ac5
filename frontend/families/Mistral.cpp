// Mistral 7B and what has its form: Llama's, with a window on attention.
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

namespace hydra::frontend {

Architecture readMistral(Config &config) {
  Architecture a;
  a.family = "mistral";
  a.title = "a pre-norm decoder with grouped heads, rotary positions and SwiGLU";
  readSizes(config, a, /*tied=*/false);
  if (!config.has("num_key_value_heads"))
    config.reject("num_key_value_heads", "a number of heads");
  readPadding(config, a);
  readHeadWidth(config, a);
  a.eps = config.positive("rms_norm_eps", 1.0e-6);
  a.activation = readActivation(config, "hidden_act", "silu");
  a.rotary = readRotary(config, a.headWidth, config.integer("max_position_embeddings", 1, 131072));
  a.window =
      config.integer("sliding_window", 1, config.json().contains("sliding_window") ? 0 : 4096);
  a.names = llamaNames();
  a.prefix = "model.";
  a.buffers = {".rotary_emb.inv_freq"};
  return a;
}

} // namespace hydra::frontend
