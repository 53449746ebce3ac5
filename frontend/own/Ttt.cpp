// The TTT of app4.
#include "frontend/Text.h"
#include "frontend/own/OwnModels.h"

#include <array>

namespace hydra::frontend {

OwnModel readTtt(Config &config) {
  OwnModel model{"ttt", {}};
  const auto integer = [&](const char *symbol, const char *field) {
    const int64_t value = config.integer(field);
    model.symbols.emplace_back(symbol, std::to_string(value));
    return value;
  };
  integer("V", "vocab_size");
  const int64_t width = integer("D", "d_model"), heads = integer("H", "n_heads");
  integer("L", "n_layers");
  integer("F", "ffn_dim");
  integer("b0", "b_ttt");
  if (config.integer("head_dim") * heads != width)
    config.reject("head_dim", "d_model / n_heads");
  const double eps = config.positive("rms_eps");
  if (config.positive("ln_eps") != eps)
    config.reject("ln_eps", "rms_eps");
  model.symbols.emplace_back("eps", realText(eps));
  model.symbols.emplace_back("rope", realText(config.positive("rope_theta")));
  model.symbols.emplace_back("eta_base", realText(config.positive("eta_base")));
  if (!config.flag("lr_gating", true))
    config.reject("lr_gating", "true");
  model.symbols.emplace_back("per_head_lr",
                             config.flag("lr_gating_per_head", false) ? "true" : "false");
  model.symbols.emplace_back("untied", config.flag("tie_embeddings", true) ? "false" : "true");
  constexpr std::array<std::string_view, 2> ignored = {"checkpoint_n_chunks", "max_seq_len"};
  config.ignore(ignored);
  return model;
}

} // namespace hydra::frontend
