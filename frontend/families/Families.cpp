// Which reader a configuration goes to, and the fields that are the same in all.
#include "frontend/families/Families.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <algorithm>

namespace hydra::frontend {

using support::fail;
using support::shown;

namespace {

constexpr Family kFamilies[] = {
    {"gemma2", "Gemma2ForCausalLM", readGemma2},
    {"gemma3_text", "Gemma3ForCausalLM", readGemma3},
    {"gpt2", "GPT2LMHeadModel", readGpt2},
    {"gpt_neox", "GPTNeoXForCausalLM", readGptNeoX},
    {"llama", "LlamaForCausalLM", readLlama},
    {"mistral", "MistralForCausalLM", readMistral},
    {"mixtral", "MixtralForCausalLM", readMixtral},
    {"olmo2", "Olmo2ForCausalLM", readOlmo2},
    {"phi3", "Phi3ForCausalLM", readPhi3},
    {"qwen2", "Qwen2ForCausalLM", readQwen2},
    {"qwen3", "Qwen3ForCausalLM", readQwen3},
};

/// Fields that say nothing of what the model computes: about files, tokens, generation, training,
/// and what a call returns. Dropout is of training by others; here there is none.
constexpr std::string_view kHarmless[] = {
    // Files.
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_flash_attn_2_enabled",
    "_name_or_path", "attn_implementation", "auto_map", "custom_pipelines", "dtype",
    "is_llama_config", "torch_dtype", "torchscript", "transformers.js_config",
    "transformers_version", "unsloth_fixed", "unsloth_version", "use_bfloat16",
    // Tokens.
    "bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id", "prefix",
    "sep_token_id", "tokenizer_class",
    // Generation.
    "bad_words_ids", "begin_suppress_tokens", "cache_implementation", "diversity_penalty",
    "do_sample", "early_stopping", "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty", "forced_bos_token_id", "forced_eos_token_id",
    "length_penalty", "max_length", "max_new_tokens", "min_length", "no_repeat_ngram_size",
    "num_beam_groups", "num_beams", "num_return_sequences", "remove_invalid_values",
    "repetition_penalty", "suppress_tokens", "task_specific_params", "temperature", "top_k",
    "top_p", "typical_p", "use_cache",
    // Training.
    "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop", "classifier_dropout",
    "embd_pdrop", "embedding_dropout", "gradient_checkpointing", "hidden_dropout",
    "hidden_dropout_prob", "neftune_noise_alpha", "num_steps", "resid_pdrop", "tf_legacy_loss",
    // Other heads, and results of a call.
    "_num_labels", "finetuning_task", "id2label", "label2id", "output_attentions",
    "output_hidden_states", "output_scores", "problem_type", "return_dict",
    "return_dict_in_generate",
    // How others compute the same.
    "chunk_size_feed_forward", "max_sequence_length", "pretraining_tp", "reorder_and_upcast_attn",
    "use_flash_attention_2"};

/// Flags that change everything.
constexpr std::string_view kFalse[] = {"add_cross_attention", "is_encoder_decoder",
                                       "rope_interleaved", "tie_encoder_decoder"};

/// Of families that have them; files of others may say that there are none.
constexpr std::string_view kBiases[] = {"attention_bias", "mlp_bias"};

std::string known() {
  std::string list;
  for (const Family &family : kFamilies)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", family.type);
  return list;
}

} // namespace

std::span<const Family> families() { return kFamilies; }

void ignoreHarmless(Config &config) {
  for (const std::string_view field : kFalse)
    config.wantFlag(field, false);
  config.ignore(kHarmless);
}

Architecture readArchitecture(Config config) {
  const std::string type = config.text("model_type");
  const auto *family = std::ranges::find(kFamilies, type, &Family::type);
  if (family == std::end(kFamilies))
    fail("{}: model_type is '{}'; known are {}", config.where(), shown(type), known());
  if (const auto classes = config.findTexts("architectures");
      classes && std::ranges::find(*classes, family->className) == classes->end())
    config.reject("architectures", fmt::format("{}", family->className));
  for (const std::string_view field : kFalse)
    config.wantFlag(field, false);
  Architecture architecture = family->read(config);
  for (const std::string_view field : kBiases)
    config.wantOffUnlessRead(field);
  config.ignore(kHarmless);
  config.finish(fmt::format("model_type '{}'", type));
  return architecture;
}

} // namespace hydra::frontend
