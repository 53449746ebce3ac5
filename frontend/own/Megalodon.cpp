// Megalodon of pszemraj: the code in Python and PyTorch, and its later one in JAX.
#include "frontend/Text.h"
#include "frontend/own/OwnModels.h"

#include <array>

namespace hydra::frontend {

namespace {

/// What both have, by the same names.
OwnModel readBoth(Config &config) {
  OwnModel model{"megalodon", {}};
  const auto integer = [&](const char *symbol, const char *field, int64_t otherwise) {
    const int64_t value = config.integer(field, 1, otherwise);
    model.symbols.emplace_back(symbol, std::to_string(value));
    return value;
  };
  const int64_t vocabulary = integer("V", "vocab_size", 32000);
  integer("D", "model_dim", 1024);
  integer("L", "num_layers", 12);
  integer("H", "num_heads", 1);
  integer("z", "z_dim", 256);
  integer("v", "value_dim", 2048);
  integer("F", "ffn_hidden_dim", 2560);
  integer("N", "cema_ndim", 16);
  integer("Cs", "chunk_size", 2048);
  integer("G", "norm_num_groups", 32);
  model.symbols.emplace_back("eps", realText(config.positive("norm_eps", 1e-5)));
  model.symbols.emplace_back("rope", realText(config.positive("rope_base", 1e4)));
  for (const char *flag : {"swiglu", "scale_emb"})
    model.symbols.emplace_back(flag, config.flag(flag, false) ? "true" : "false");
  config.wantFlag("rescale_nffn", false);
  if (!config.flag("norm_affine", true))
    config.reject("norm_affine", "true");
  if (config.has("output_size") && config.json()["output_size"] != -1 &&
      config.json()["output_size"] != vocabulary)
    config.reject("output_size", "-1 or vocab_size");
  constexpr std::array<std::string_view, 8> ignored = {
      "output_size", "dropout",      "attention_dropout", "hidden_dropout",
      "init_mode",   "bos_token_id", "eos_token_id",      "pad_token_id"};
  config.ignore(ignored);
  return model;
}

} // namespace

OwnModel readMegalodonHf(Config &config) {
  OwnModel model = readBoth(config);
  model.symbols.emplace_back("first_form", "true");
  model.symbols.emplace_back("tied", "true"); // whatever share_emb says
  // Of caches, of positions that are computed when they are wanted, and what is the same as
  // another.
  constexpr std::array<std::string_view, 7> ignored = {
      "max_cache_len", "cache_unbounded", "max_positions",      "efficient_attn",
      "share_emb",     "is_decoder",      "num_attention_heads"};
  config.ignore(ignored);
  return model;
}

OwnModel readMegalodonJax(Config &config) {
  OwnModel model = readBoth(config);
  model.symbols.emplace_back("tied", config.flag("share_emb", false) ? "true" : "false");
  if (config.findInteger("attention_window"))
    config.reject("attention_window", "none: attention within chunks");
  constexpr std::array<std::string_view, 8> ignored = {"attention_dropout_mode",
                                                       "use_checkpoint",
                                                       "use_associative_segment_scan",
                                                       "param_dtype",
                                                       "compute_dtype",
                                                       "accum_dtype",
                                                       "attention_softmax_dtype",
                                                       "loss_softmax_dtype"};
  config.ignore(ignored);
  return model;
}

} // namespace hydra::frontend
