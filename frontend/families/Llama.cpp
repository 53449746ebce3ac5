// Llama 1 to 3, and what has its form: SmolLM, TinyLlama, Yi.
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

namespace hydra::frontend {

Architecture readLlama(Config &config) {
  Architecture a;
  a.family = "llama";
  a.title = "a pre-norm decoder with grouped heads, rotary positions and SwiGLU";
  readSizes(config, a, /*tied=*/false);
  readPadding(config, a);
  readHeadWidth(config, a);
  a.eps = config.positive("rms_norm_eps", 1.0e-6);
  a.activation = readActivation(config, "hidden_act", "silu");
  a.rotary = readRotary(config, a.headWidth, config.integer("max_position_embeddings", 1, 2048));
  a.projectionBias = a.outBias = config.flag("attention_bias", false);
  a.mlpBias = config.flag("mlp_bias", false);
  a.names = llamaNames();
  a.prefix = "model.";
  a.buffers = {".rotary_emb.inv_freq"};
  return a;
}

} // namespace hydra::frontend
