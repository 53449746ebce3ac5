// Mixtral 8x7B and 8x22B: Mistral's blocks with experts in the place of the MLP.
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

#include <fmt/format.h>

namespace hydra::frontend {

/// The loss that balances experts is asked for by `output_router_logits`; without it its weight
/// means nothing.
static void readRouter(Config &config, Architecture &a) {
  a.experts = config.integer("num_local_experts", 1, 8);
  a.chosen = config.integer("num_experts_per_tok", 1, 2);
  if (a.chosen > a.experts)
    config.reject("num_experts_per_tok", fmt::format("at most num_local_experts, {}", a.experts));
  config.wantFlag("output_router_logits", false);
  if (config.has("router_jitter_noise") && config.json()["router_jitter_noise"] != 0.0)
    config.reject("router_jitter_noise", "0: noise on what the router reads is not applied");
  constexpr std::string_view unused[] = {"router_aux_loss_coef", "router_jitter_noise"};
  config.ignore(unused);
}

Architecture readMixtral(Config &config) {
  Architecture a;
  a.family = "mixtral";
  a.title = "a pre-norm decoder with grouped heads, rotary positions and experts of SwiGLU";
  readSizes(config, a, /*tied=*/false);
  if (!config.has("num_key_value_heads"))
    config.reject("num_key_value_heads", "a number of heads");
  readPadding(config, a);
  readHeadWidth(config, a);
  a.eps = config.positive("rms_norm_eps", 1.0e-5);
  a.activation = readActivation(config, "hidden_act", "silu");
  a.rotary = readRotary(config, a.headWidth, config.integer("max_position_embeddings", 1, 131072),
                        {.defaultBase = 1.0e6});
  a.window = config.integer("sliding_window", 1, 0);
  readRouter(config, a);
  a.names = llamaNames();
  const std::string experts = "model.layers.{layer}.block_sparse_moe.";
  a.names.router = experts + "gate";
  a.names.gate = experts + "experts.{row}.w1";
  a.names.up = experts + "experts.{row}.w3";
  a.names.down = experts + "experts.{row}.w2";
  a.prefix = "model.";
  a.buffers = {".rotary_emb.inv_freq"};
  return a;
}

} // namespace hydra::frontend
