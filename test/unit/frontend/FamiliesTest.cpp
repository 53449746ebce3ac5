// What configurations say of architectures, and which of them are refused.
#include "frontend/families/Families.h"

#include "runtime/support/Error.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

using namespace hydra::frontend;
using nlohmann::ordered_json;

namespace {

ordered_json llama() {
  return ordered_json::parse(R"({"model_type": "llama", "vocab_size": 61, "hidden_size": 16,
    "intermediate_size": 24, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5})");
}

ordered_json with(ordered_json config, const char *more) {
  config.update(ordered_json::parse(more));
  return config;
}

Architecture read(const ordered_json &config) { return readArchitecture({config, "config.json"}); }

std::string problem(const ordered_json &config) {
  try {
    read(config);
  } catch (const hydra::support::Error &error) {
    return error.what();
  }
  return "";
}

TEST(Families, EachIsReadByItsTypeAndClass) {
  EXPECT_EQ(problem(with(llama(), R"({"model_type": "mamba"})")),
            "config.json: model_type is 'mamba'; known are gemma2, gemma3_text, gpt2, gpt_neox, "
            "llama, mistral, mixtral, "
            "olmo2, phi3, qwen2, qwen3");
  EXPECT_EQ(problem(with(llama(), R"({"architectures": ["LlamaForSequenceClassification"]})")),
            "config.json: architectures is [\"LlamaForSequenceClassification\"]; expected "
            "LlamaForCausalLM");
  EXPECT_EQ(problem(with(llama(), R"({"architectures": ["LlamaForCausalLM"]})")), "");
  EXPECT_EQ(problem(with(llama(), R"({"model_type": null})")),
            "config.json: has no model_type; expected a string");
}

TEST(Families, IgnoreHarmlessFieldsAndNoOthers) {
  EXPECT_EQ(
      problem(with(llama(),
                   R"({"torch_dtype": "bfloat16", "use_cache": true, "bos_token_id": [1, 2]})")),
      "");
  // As SmolLM2, DistilGPT-2, GPT-NeoX-20B and the first Llama are published.
  EXPECT_EQ(problem(with(llama(), R"({"is_llama_config": true, "rope_interleaved": false,
    "transformers.js_config": {"dtype": "q4"}, "_num_labels": 1, "attention_probs_dropout_prob": 0,
    "hidden_dropout_prob": 0, "max_sequence_length": 2048})")),
            "");
  EXPECT_EQ(
      problem(with(llama(), R"({"rope_interleaved": true})")),
      "config.json: rope_interleaved is true; expected false; anything else is not supported");
  EXPECT_EQ(problem(with(llama(), R"({"quantization_config": {"bits": 4}})")),
            "config.json: the field 'quantization_config' of model_type 'llama' is not supported; "
            "it may change "
            "what the model computes");
  EXPECT_EQ(
      problem(with(llama(), R"({"is_encoder_decoder": true})")),
      "config.json: is_encoder_decoder is true; expected false; anything else is not supported");
  // Of another family.
  EXPECT_EQ(problem(with(llama(), R"({"sliding_window": 4})")),
            "config.json: the field 'sliding_window' of model_type 'llama' is not supported; it "
            "may change what "
            "the model computes");
}

TEST(Families, TurnPartsOfHeadsOnlyWhereTheyHaveAFormForIt) {
  const char *half = "config.json: by partial_rotary_factor rotary positions turn 2 of the 4 "
                     "channels of a head; expected all of them";
  EXPECT_EQ(problem(with(llama(), R"({"partial_rotary_factor": 0.5})")), half);
  EXPECT_EQ(problem(with(llama(), R"({"rope_parameters": {"partial_rotary_factor": 0.5}})")), half);
  EXPECT_EQ(problem(with(llama(), R"({"partial_rotary_factor": 1.0})")), "");
  const ordered_json phi3 = with(llama(), R"({"model_type": "phi3", "pad_token_id": null})");
  EXPECT_EQ(read(with(phi3, R"({"partial_rotary_factor": 0.5})")).rotary->width, 2);
  EXPECT_EQ(
      read(with(phi3, R"({"rope_parameters": {"partial_rotary_factor": 0.5}})")).rotary->width, 2);
}

TEST(Families, GptNeoXMayHaveTheCommonNamesBesideItsOwn) {
  ordered_json config = with(llama(), R"({"model_type": "gpt_neox", "hidden_size": 32,
    "rotary_emb_base": 1000, "rotary_pct": 0.5, "rope_theta": 1000, "partial_rotary_factor": 0.5})");
  config.erase("num_key_value_heads");
  config.erase("rms_norm_eps");
  EXPECT_EQ(read(config).rotary->base, 1000.0);
  EXPECT_EQ(read(config).rotary->width, 4);
  EXPECT_EQ(problem(with(config, R"({"rope_theta": 10000})")),
            "config.json: rope_theta is 10000; expected 1000, as rotary_emb_base says");
  EXPECT_EQ(problem(with(config, R"({"partial_rotary_factor": 1.0})")),
            "config.json: partial_rotary_factor is 1.0; expected 0.5, as rotary_pct says");
  config.erase("rotary_emb_base");
  EXPECT_EQ(read(config).rotary->base, 1000.0);
}

TEST(Families, Phi4MiniHasFieldsThatSayNothing) {
  const ordered_json phi3 =
      with(llama(), R"({"model_type": "phi3", "pad_token_id": 60, "full_attn_mod": 1,
    "interpolate_factor": 1, "lm_head_bias": false, "mlp_bias": false})");
  EXPECT_EQ(problem(phi3), "");
  EXPECT_EQ(problem(with(phi3, R"({"full_attn_mod": 2})")),
            "config.json: full_attn_mod is 2; expected 1");
}

TEST(Families, LlamaHasItsDefaults) {
  const Architecture a = read(llama());
  EXPECT_EQ(a.headWidth, 4);
  EXPECT_EQ(a.keyHeads, 2);
  EXPECT_FALSE(a.tied || a.projectionBias || a.mlpBias);
  EXPECT_EQ(a.rotary->base, 1e4);
  EXPECT_EQ(a.rotary->width, 4);
  ordered_json config = llama();
  config.erase("num_key_value_heads");
  config.erase("rms_norm_eps");
  EXPECT_EQ(read(config).keyHeads, 4);
  EXPECT_EQ(read(config).eps, 1e-6);
  EXPECT_EQ(read(with(llama(), R"({"head_dim": 10})")).headWidth, 10);
}

TEST(Families, MixtralHasExperts) {
  const ordered_json config = with(llama(), R"({"model_type": "mixtral"})");
  const Architecture a = read(config);
  EXPECT_EQ(a.experts, 8);
  EXPECT_EQ(a.chosen, 2);
  EXPECT_EQ(a.window, 0);
  EXPECT_EQ(a.rotary->base, 1e6);
  EXPECT_EQ(read(with(config, R"({"sliding_window": 5})")).window, 5);
  EXPECT_EQ(problem(with(config, R"({"router_aux_loss_coef": 0.02, "router_jitter_noise": 0.0,
                                     "output_router_logits": false})")),
            "");
  EXPECT_EQ(problem(with(config, R"({"num_local_experts": 4, "num_experts_per_tok": 5})")),
            "config.json: num_experts_per_tok is 5; expected at most num_local_experts, 4");
  EXPECT_EQ(
      problem(with(config, R"({"router_jitter_noise": 0.1})")),
      "config.json: router_jitter_noise is 0.1; expected 0: noise on what the router reads is "
      "not applied");
  EXPECT_EQ(problem(with(config, R"({"output_router_logits": true})")),
            "config.json: output_router_logits is true; expected false; anything else is not "
            "supported");
}

TEST(Families, RefuseSizesThatDoNotFit) {
  EXPECT_EQ(problem(with(llama(), R"({"num_key_value_heads": 3})")),
            "config.json: num_key_value_heads is 3; expected a divisor of num_attention_heads, 4");
  EXPECT_EQ(problem(with(llama(), R"({"hidden_size": 18})")),
            "config.json: hidden_size is 18; expected a multiple of num_attention_heads, 4");
  EXPECT_EQ(problem(with(llama(), R"({"num_hidden_layers": 1025})")),
            "config.json: num_hidden_layers is 1025; expected an integer from 1 to 1024");
  EXPECT_EQ(
      problem(with(llama(), R"({"hidden_act": "mish"})")),
      "config.json: hidden_act is \"mish\"; expected silu, swish, gelu, gelu_python, gelu_10, "
      "gelu_new, gelu_fast, gelu_accurate, gelu_pytorch_tanh, gelu_python_tanh, quick_gelu, relu, "
      "relu2, relu6, leaky_relu, sigmoid, tanh or linear");
  EXPECT_EQ(
      problem(with(llama(), R"({"head_dim": 5})")),
      "config.json: rotary positions turn 5 of the 5 channels of a head; expected pairs of them");
}

//===-- Rotary positions --------------------------------------------------------------------===//

Rotary rotary(const char *more) { return *read(with(llama(), more)).rotary; }

TEST(Rotary, OldAndNewFieldsSayTheSame) {
  const Rotary before =
      rotary(R"({"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}})");
  const Rotary now =
      rotary(R"({"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 4.0}})");
  for (const Rotary &r : {before, now}) {
    EXPECT_EQ(r.scaling, Rotary::Scaling::Linear);
    EXPECT_EQ(r.base, 5e5);
    EXPECT_EQ(r.factor, 4.0);
  }
  EXPECT_EQ(rotary(R"({"rope_parameters": {"rope_theta": 7.0, "rope_type": "default"}})").base,
            7.0);
  EXPECT_EQ(rotary(R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})").original, 64);
}

TEST(Rotary, YarnAndLongRopeSharpenAttention) {
  EXPECT_NEAR(rotary(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                         "original_max_position_embeddings": 16}, "head_dim": 8})")
                  .attention,
              0.1 * std::log(4.0) + 1.0, 1e-15);
  const Rotary r = rotary(
      R"({"rope_scaling": {"rope_type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4],
                              "original_max_position_embeddings": 16}})");
  EXPECT_EQ(r.factor, 4.0);
  EXPECT_NEAR(r.attention, std::sqrt(1.0 + std::log(4.0) / std::log(16.0)), 1e-15);
}

TEST(Rotary, PositionsOfTrainingAreSaidInOnePlace) {
  // Whole pairs of channels can be in order where the numbers between them are not.
  for (const bool truncate : {true, false})
    EXPECT_EQ(problem(with(llama(), fmt::format(R"({{"rope_scaling": {{"rope_type": "yarn",
                      "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 2.0,
                      "beta_slow": 2.1, "truncate": {}}}}})",
                                                truncate)
                                        .c_str()))
                  .empty(),
              truncate);
  const auto yarn = [](const char *beside, const char *inside) {
    return fmt::format(R"({{{} "rope_scaling": {{"rope_type": "yarn", "factor": 4.0 {}}}}})",
                       beside, inside);
  };
  constexpr const char *beside = R"("original_max_position_embeddings": 16,)",
                       *inside = R"(, "original_max_position_embeddings": 16)";
  for (const std::string &text : {yarn(beside, ""), yarn("", inside), yarn(beside, inside)})
    EXPECT_EQ(rotary(text.c_str()).original, 16) << text;
  EXPECT_EQ(
      problem(with(llama(), yarn(beside, R"(, "original_max_position_embeddings": 32)").c_str())),
      "config.json: rope_scaling: original_max_position_embeddings is 32; expected 16, as the "
      "field beside it or the family says");
  // Phi-3 has 4096 where nothing is said, others the positions of the configuration.
  const Architecture phi = read(with(
      llama(),
      R"({"model_type": "phi3", "pad_token_id": null, "max_position_embeddings": 8192, "head_dim": 4, "rope_scaling":
          {"type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4]}})"));
  EXPECT_EQ(phi.rotary->original, 4096);
  EXPECT_EQ(phi.rotary->factor, 2.0);
}

TEST(Rotary, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(problem(with(llama(), R"({"rope_scaling": {"rope_type": "mrope"}})")),
            "config.json: rope_scaling: rope_type is \"mrope\"; expected default, linear, dynamic, "
            "llama3, yarn or "
            "longrope");
  EXPECT_EQ(
      problem(with(llama(), R"({"rope_scaling": {"type": "linear", "factor": 2.0, "trick": 1}})")),
      "config.json: rope_scaling: the field 'trick' of rotary positions is not supported; it may "
      "change what "
      "the model computes");
  EXPECT_EQ(problem(with(
                llama(),
                R"({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {}})")),
            "config.json: rope_scaling is {\"type\":\"linear\",\"factor\":2.0}; expected only one "
            "of rope_scaling and "
            "rope_parameters");
  EXPECT_EQ(
      problem(with(
          llama(),
          R"({"rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]}})")),
      "config.json: rope_scaling: short_factor is [1]; expected 2 numbers, one for each pair of "
      "channels");
  EXPECT_EQ(
      problem(
          with(llama(), R"({"rope_scaling": {"type": "llama3", "factor": 2.0, "low_freq_factor": 4,
                                      "high_freq_factor": 4}})")),
      "config.json: rope_scaling: high_freq_factor is 4; expected more than low_freq_factor, 4");
}

//===-- Kinds of layers ---------------------------------------------------------------------===//

ordered_json qwen2(const char *more) {
  return with(with(llama(), R"({"model_type": "qwen2"})"), more);
}

TEST(Layers, SlideAsTheConfigurationSays) {
  EXPECT_EQ(read(qwen2(R"({"sliding_window": 4})")).window, 0);
  const Architecture last =
      read(qwen2(R"({"use_sliding_window": true, "sliding_window": 4, "max_window_layers": 3})"));
  EXPECT_EQ(last.window, 4);
  EXPECT_EQ(last.slides, (std::vector<bool>{false, false, false, true}));
  const Architecture listed = read(qwen2(R"({"use_sliding_window": true, "sliding_window": 4,
    "layer_types": ["full_attention", "sliding_attention", "full_attention", "full_attention"]})"));
  EXPECT_EQ(listed.slides, (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(
      read(qwen2(R"({"use_sliding_window": true, "sliding_window": 4, "max_window_layers": 4})"))
          .window,
      0);

  const Architecture gemma =
      read(with(llama(), R"({"model_type": "gemma2", "sliding_window": 4})"));
  EXPECT_EQ(gemma.slides, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(gemma.scoreCap, 50.0);
  EXPECT_EQ(
      read(with(llama(), R"({"model_type": "gemma2", "attn_logit_softcapping": null})")).scoreCap,
      std::nullopt);
  // Gemma 3 has the field too, and transformers computes the same whatever it says.
  const ordered_json gemma3 = with(llama(), R"({"model_type": "gemma3_text"})");
  EXPECT_EQ(read(with(gemma3, R"({"attn_logit_softcapping": null})")).scoreCap, std::nullopt);
  EXPECT_EQ(problem(with(gemma3, R"({"attn_logit_softcapping": 50.0})")),
            "config.json: attn_logit_softcapping is 50.0; expected null: transformers does not cap "
            "scores of Gemma 3");

  EXPECT_EQ(read(with(llama(), R"({"model_type": "mistral"})")).window, 4096);
  EXPECT_EQ(read(with(llama(), R"({"model_type": "mistral", "sliding_window": null})")).window, 0);
}

TEST(Layers, RefuseKindsThatTheyDoNotHave) {
  EXPECT_EQ(problem(qwen2(R"({"layer_types": ["full_attention"]})")),
            "config.json: layer_types is [\"full_attention\"]; expected one for each of 4 layers");
  EXPECT_EQ(problem(qwen2(R"({"layer_types": ["linear", "linear", "linear", "linear"]})")),
            "config.json: layer_types is [\"linear\",\"linear\",\"linear\",\"linear\"]; expected "
            "full_attention and "
            "sliding_attention");
  EXPECT_EQ(
      problem(qwen2(R"({"layer_types": ["sliding_attention", "full_attention", "full_attention",
                              "full_attention"]})")),
      "config.json: sliding_window is missing; expected a window, which layer_types asks for");
}

TEST(Families, Gemma3HasARotaryBaseForEachKindOfLayers) {
  const char *old =
      R"({"model_type": "gemma3_text", "num_hidden_layers": 6, "rope_local_base_freq": 100.0,
                        "rope_scaling": {"rope_type": "linear", "factor": 8.0}})";
  const char *now = R"({"model_type": "gemma3_text", "num_hidden_layers": 6, "rope_parameters": {
    "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}})";
  for (const char *text : {old, now}) {
    const Architecture a = read(with(llama(), text));
    EXPECT_EQ(a.rotary->base, 1e6);
    EXPECT_EQ(a.localRotary->base, 100.0);
    EXPECT_EQ(a.localRotary->scaling, Rotary::Scaling::None);
    EXPECT_EQ(a.rotary->factor, 8.0);
    EXPECT_EQ(a.slides, (std::vector<bool>{true, true, true, true, true, false}));
  }
}

TEST(Families, Gemma3ScalesTheRotaryPositionsOfEachKindOfLayers) {
  const ordered_json config = with(llama(), R"({"model_type": "gemma3_text", "rope_parameters": {
    "full_attention": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32},
    "sliding_attention": {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1,
                          "high_freq_factor": 4, "original_max_position_embeddings": 16}}})");
  const auto kinds = [&](const char *all, const char *last) {
    return with(
        config,
        fmt::format(R"({{"layer_types": ["{0}", "{0}", "{0}", "{1}"]}})", all, last).c_str());
  };
  const Architecture both = read(kinds("sliding_attention", "full_attention"));
  EXPECT_EQ(both.rotary->scaling, Rotary::Scaling::Yarn);
  EXPECT_EQ(both.rotary->base, 1e6);
  EXPECT_EQ(both.rotary->original, 32);
  EXPECT_EQ(both.localRotary->scaling, Rotary::Scaling::Llama3);
  EXPECT_EQ(both.localRotary->base, 100.0);
  EXPECT_EQ(both.localRotary->original, 16);
  // Of one kind of layers alone, the positions of the other are not there.
  const Architecture full = read(kinds("full_attention", "full_attention")),
                     slides = read(kinds("sliding_attention", "sliding_attention"));
  EXPECT_EQ(full.rotary->scaling, Rotary::Scaling::Yarn);
  EXPECT_EQ(slides.rotary->scaling, Rotary::Scaling::Llama3);
  EXPECT_FALSE(full.localRotary || slides.localRotary);
}

//===-- Padding -----------------------------------------------------------------------------===//

TEST(Padding, IsTheIdOfTheConfigurationOrOfTheFamily) {
  using Id = std::optional<int64_t>;
  EXPECT_EQ(read(llama()).padding, Id());
  EXPECT_EQ(read(with(llama(), R"({"pad_token_id": null})")).padding, Id());
  EXPECT_EQ(read(with(llama(), R"({"pad_token_id": 5})")).padding, Id(5));
  EXPECT_EQ(read(with(llama(), R"({"pad_token_id": -1})")).padding, Id(60));
  for (const char *family :
       {"mistral", "mixtral", "qwen2", "qwen3", "olmo2", "phi3", "gemma2", "gemma3_text"}) {
    ordered_json config = with(llama(), R"({"pad_token_id": 7, "vocab_size": 40000})");
    config["model_type"] = family;
    EXPECT_EQ(read(config).padding, Id(7)) << family;
    config["pad_token_id"] = nullptr;
    EXPECT_EQ(read(config).padding, Id()) << family;
    config.erase("pad_token_id");
    const std::string name = family;
    EXPECT_EQ(read(config).padding, name == "olmo2"                             ? Id(1)
                                    : name == "phi3"                            ? Id(32000)
                                    : name == "gemma2" || name == "gemma3_text" ? Id(0)
                                                                                : Id())
        << family;
  }
  // Their tables have gradients for all ids.
  ordered_json config =
      with(llama(), R"({"model_type": "gpt_neox", "hidden_size": 32, "pad_token_id": 99})");
  config.erase("num_key_value_heads");
  config.erase("rms_norm_eps");
  EXPECT_EQ(read(config).padding, Id());
}

TEST(Padding, IsOfTheVocabulary) {
  EXPECT_EQ(problem(with(llama(), R"({"pad_token_id": 61})")),
            "config.json: pad_token_id is 61; expected an id from -61 to 60, or null");
  EXPECT_EQ(problem(with(llama(), R"({"pad_token_id": -62})")),
            "config.json: pad_token_id is -62; expected an id from -61 to 60, or null");
  EXPECT_EQ(read(with(llama(), R"({"model_type": "phi3"})")).padding, std::optional<int64_t>());
}

} // namespace
