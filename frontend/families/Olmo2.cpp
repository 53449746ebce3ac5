// OLMo 2: norms behind attention and MLP, and of all queries and keys together.
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

namespace hydra::frontend {

Architecture readOlmo2(Config &config) {
  Architecture a;
  a.family = "olmo2";
  a.title = "a decoder with norms behind attention and MLP, and of queries and keys, rotary "
            "positions and SwiGLU";
  readSizes(config, a, /*tied=*/false);
  readPadding(config, a, 1);
  readHeadWidth(config, a);
  a.eps = config.positive("rms_norm_eps", 1.0e-5);
  a.activation = readActivation(config, "hidden_act", "silu");
  a.rotary = readRotary(config, a.headWidth, config.integer("max_position_embeddings", 1, 2048));
  a.projectionBias = a.outBias = config.flag("attention_bias", false);
  a.block = BlockForm::PostNorm;
  a.headNorm = HeadNorm::AllHeads;
  const std::string layer = "model.layers.{layer}.";
  a.names = llamaNames();
  a.names.norm1 = a.names.norm2 = "";
  a.names.postNorm1 = layer + "post_attention_layernorm";
  a.names.postNorm2 = layer + "post_feedforward_layernorm";
  a.names.qNorm = layer + "self_attn.q_norm";
  a.names.kNorm = layer + "self_attn.k_norm";
  a.prefix = "model.";
  a.buffers = {".rotary_emb.inv_freq"};
  return a;
}

} // namespace hydra::frontend
