// Sizes, activations, kinds of layers and names as most families have them.
#include "frontend/families/Common.h"

#include "dialects/hydra/Limits.h"
#include "runtime/support/Error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace hydra::frontend {

int64_t readLayers(Config &config, std::string_view field) {
  const int64_t layers = config.integer(field);
  if (layers > kMostLayers)
    config.reject(field, fmt::format("an integer from 1 to {}", kMostLayers));
  return layers;
}

void readSizes(Config &config, Architecture &a, bool tied) {
  a.hidden = config.integer("hidden_size");
  a.inner = config.integer("intermediate_size");
  a.layers = readLayers(config, "num_hidden_layers");
  a.heads = config.integer("num_attention_heads");
  a.keyHeads = config.integer("num_key_value_heads", 1, a.heads);
  a.vocabulary = config.integer("vocab_size");
  a.initStd = config.positive("initializer_range", 0.02);
  a.tied = config.flag("tie_word_embeddings", tied);
  if (a.heads % a.keyHeads != 0)
    config.reject("num_key_value_heads",
                  fmt::format("a divisor of num_attention_heads, {}", a.heads));
}

void readPadding(Config &config, Architecture &a, std::optional<int64_t> otherwise) {
  constexpr std::string_view field = "pad_token_id";
  const bool said = config.json().contains(field);
  const std::optional<int64_t> id =
      said ? config.findInteger(field, std::numeric_limits<int32_t>::min()) : otherwise;
  if (!id)
    return;
  if (*id < -a.vocabulary || *id >= a.vocabulary) {
    if (said)
      config.reject(field,
                    fmt::format("an id from {} to {}, or null", -a.vocabulary, a.vocabulary - 1));
    return;
  }
  a.padding = *id < 0 ? *id + a.vocabulary : *id;
}

void readHeadWidth(Config &config, Architecture &a) {
  if (const auto width = config.findInteger("head_dim")) {
    a.headWidth = *width;
    return;
  }
  if (a.hidden % a.heads != 0)
    config.reject("hidden_size", fmt::format("a multiple of num_attention_heads, {}", a.heads));
  a.headWidth = a.hidden / a.heads;
}

/// The names of transformers. Some differ by the rounding of a constant, or by who computes it.
constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"silu", Activation::Silu},
    {"swish", Activation::Silu},
    {"gelu", Activation::Gelu},
    {"gelu_python", Activation::Gelu},
    {"gelu_10", Activation::GeluClipped},
    {"gelu_new", Activation::GeluTanh},
    {"gelu_fast", Activation::GeluTanh},
    {"gelu_accurate", Activation::GeluTanh},
    {"gelu_pytorch_tanh", Activation::GeluTanh},
    {"gelu_python_tanh", Activation::GeluTanh},
    {"quick_gelu", Activation::QuickGelu},
    {"relu", Activation::Relu},
    {"relu2", Activation::Relu2},
    {"relu6", Activation::Relu6},
    {"leaky_relu", Activation::LeakyRelu},
    {"sigmoid", Activation::Sigmoid},
    {"tanh", Activation::Tanh},
    {"linear", Activation::Linear},
};

Activation readActivation(Config &config, std::string_view field, std::string_view otherwise) {
  const std::string name = config.text(field, std::string(otherwise));
  std::vector<std::string_view> known;
  for (const auto &[word, activation] : kActivations) {
    if (word == name)
      return activation;
    known.push_back(word);
  }
  const std::string_view last = known.back();
  known.pop_back();
  config.reject(field, fmt::format("{} or {}", fmt::join(known, ", "), last));
}

bool readLayerTypes(Config &config, Architecture &a) {
  const auto types = config.findTexts("layer_types");
  if (!types)
    return false;
  if (types->size() != static_cast<size_t>(a.layers))
    config.reject("layer_types", fmt::format("one for each of {} layers", a.layers));
  a.slides.clear();
  for (const std::string &type : *types) {
    if (type != "full_attention" && type != "sliding_attention")
      config.reject("layer_types", "full_attention and sliding_attention");
    a.slides.push_back(type == "sliding_attention");
  }
  if (std::ranges::none_of(a.slides, [](bool slides) { return slides; }))
    a.window = 0;
  else if (a.window == 0)
    config.reject("sliding_window", "a window, which layer_types asks for");
  return true;
}

Names llamaNames() {
  const std::string layer = "model.layers.{layer}.", attention = layer + "self_attn.",
                    mlp = layer + "mlp.";
  Names names;
  names.embedding = "model.embed_tokens";
  names.norm = "model.norm";
  names.head = "lm_head";
  names.norm1 = layer + "input_layernorm";
  names.q = attention + "q_proj";
  names.k = attention + "k_proj";
  names.v = attention + "v_proj";
  names.out = attention + "o_proj";
  names.norm2 = layer + "post_attention_layernorm";
  names.gate = mlp + "gate_proj";
  names.up = mlp + "up_proj";
  names.down = mlp + "down_proj";
  return names;
}

} // namespace hydra::frontend
