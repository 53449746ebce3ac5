// GPT-NeoX and Pythia: attention and MLP beside each other, partial rotary positions, q, k and v of
// each head side by side in one matrix.
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

namespace hydra::frontend {

Architecture readGptNeoX(Config &config) {
  Architecture a;
  a.family = "gpt_neox";
  readSizes(config, a, /*tied=*/false);
  if (a.keyHeads != a.heads)
    config.reject("num_key_value_heads", "num_attention_heads");
  readHeadWidth(config, a);
  a.norm = NormKind::Layer;
  a.eps = config.positive("layer_norm_eps", 1.0e-5);
  a.activation = readActivation(config, "hidden_act", "gelu");
  a.gated = false;
  a.mlpBias = true;
  a.block = config.flag("use_parallel_residual", true) ? BlockForm::Parallel : BlockForm::PreNorm;
  a.title = a.block == BlockForm::Parallel
                ? "attention and MLP beside each other, LayerNorm, rotary positions on a part of "
                  "each head"
                : "LayerNorm, GELU, biases, rotary positions on a part of each head";
  a.projections = Projections::PerHead;
  a.projectionBias = a.outBias = config.flag("attention_bias", true);
  a.rotary = readRotary(
      config, a.headWidth, config.integer("max_position_embeddings", 1, 2048),
      {.base = "rotary_emb_base", .part = "rotary_pct", .defaultPart = 0.25, .partial = true});
  config.flag("is_decoder", true); // the same either way

  const std::string layer = "gpt_neox.layers.{layer}.";
  a.names.embedding = "gpt_neox.embed_in";
  a.names.norm = "gpt_neox.final_layer_norm";
  a.names.head = "embed_out";
  a.names.norm1 = layer + "input_layernorm";
  a.names.qkv = layer + "attention.query_key_value";
  a.names.out = layer + "attention.dense";
  a.names.norm2 = layer + "post_attention_layernorm";
  a.names.up = layer + "mlp.dense_h_to_4h";
  a.names.down = layer + "mlp.dense_4h_to_h";
  a.prefix = "gpt_neox.";
  a.buffers = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"};
  return a;
}

} // namespace hydra::frontend
