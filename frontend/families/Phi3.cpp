// Phi-3 and Phi-4: Llama's form with the rows of q, k and v in one matrix, and those of gate and
// up.
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

namespace hydra::frontend {

Architecture readPhi3(Config &config) {
  Architecture a;
  a.family = "phi3";
  a.title = "a pre-norm decoder with fused projections, rotary positions and SwiGLU";
  readSizes(config, a, /*tied=*/false);
  readPadding(config, a, 32000);
  readHeadWidth(config, a);
  a.eps = config.positive("rms_norm_eps", 1.0e-5);
  a.activation = readActivation(config, "hidden_act", "silu");
  const int64_t most = config.integer("max_position_embeddings", 1, 4096);
  a.rotary = readRotary(config, a.headWidth, most, {.partial = true, .original = 4096});
  a.window = config.integer("sliding_window", 1, 0);
  for (const std::string_view bias : {"attention_bias", "mlp_bias", "lm_head_bias"})
    config.wantFlag(bias, false);
  for (const std::string_view field : {"full_attn_mod", "interpolate_factor"}) // of Phi-4-mini
    if (config.integer(field, 1, 1) != 1)
      config.reject(field, "1");
  a.projections = Projections::Stacked;
  a.fusedGate = true;
  a.names = llamaNames();
  a.names.qkv = "model.layers.{layer}.self_attn.qkv_proj";
  a.names.gateUp = "model.layers.{layer}.mlp.gate_up_proj";
  a.prefix = "model.";
  a.buffers = {".rotary_emb.inv_freq"};
  return a;
}

} // namespace hydra::frontend
