// GPT-2: learned positions, LayerNorm, one matrix for q, k and v. Its projections are stored as
// [in, out].
#include "frontend/families/Common.h"
#include "frontend/families/Families.h"

#include "runtime/support/Error.h"

#include <array>

namespace hydra::frontend {

Architecture readGpt2(Config &config) {
  Architecture a;
  a.family = "gpt2";
  a.title = "learned positions, LayerNorm, GELU, biases, one matrix for q, k and v";
  a.hidden = config.integer("n_embd");
  a.layers = readLayers(config, "n_layer");
  a.heads = a.keyHeads = config.integer("n_head");
  a.positions = config.integer("n_positions");
  a.inner = config.integer("n_inner", 1, 4 * a.hidden);
  a.vocabulary = config.integer("vocab_size");
  if (a.hidden % a.heads != 0)
    config.reject("n_embd", fmt::format("a multiple of n_head, {}", a.heads));
  a.headWidth = a.hidden / a.heads;
  a.initStd = config.positive("initializer_range", 0.02);
  a.norm = NormKind::Layer;
  a.eps = config.positive("layer_norm_epsilon", 1.0e-5);
  a.activation = readActivation(config, "activation_function", "gelu_new");
  a.gated = false;
  a.projections = Projections::Stacked;
  a.projectionBias = a.outBias = a.mlpBias = true;
  if (!config.flag("scale_attn_weights", true))
    a.queryScale = 1.0;
  a.scaleByLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
  a.tied = config.flag("tie_word_embeddings", true);
  // Of its other heads, the length of a mask, and what the published ones have of old programs.
  constexpr std::array<std::string_view, 9> others = {"n_ctx",
                                                      "n_special",
                                                      "output_past",
                                                      "predict_special_tokens",
                                                      "summary_activation",
                                                      "summary_first_dropout",
                                                      "summary_proj_to_labels",
                                                      "summary_type",
                                                      "summary_use_proj"};
  config.ignore(others);

  const std::string layer = "transformer.h.{layer}.";
  a.names.embedding = "transformer.wte";
  a.names.positions = "transformer.wpe";
  a.names.norm = "transformer.ln_f";
  a.names.head = "lm_head";
  a.names.norm1 = layer + "ln_1";
  a.names.qkv = layer + "attn.c_attn";
  a.names.out = layer + "attn.c_proj";
  a.names.norm2 = layer + "ln_2";
  a.names.up = layer + "mlp.c_fc";
  a.names.down = layer + "mlp.c_proj";
  a.prefix = "transformer.";
  a.transposed = true;
  a.buffers = {".attn.bias", ".attn.masked_bias"};
  return a;
}

} // namespace hydra::frontend
