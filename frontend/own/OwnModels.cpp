// Which program a checkpoint is from, and the models that are part of this one.
#include "frontend/own/OwnModels.h"

#include "frontend/Text.h"
#include "frontend/families/Families.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Safetensors.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <algorithm>
#include <array>

namespace fs = std::filesystem;
using hydra::support::fail;
using hydra::support::isThere;
using hydra::support::shown;

namespace hydra::frontend {

namespace {

constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
    {
        "megalodon",
#include "frontend/own/megalodon.inc"
    },
    {
        "ttt",
#include "frontend/own/ttt.inc"
    },
};

// HYDRA's routers and its average of losses; angles and masks that older files hold.
constexpr std::string_view kHydraBuffers[] = {
    "._aux_loss",          "loss_baseline._ema",         "loss_baseline._ema_var",
    "loss_baseline._step", "loss_baseline._initialized", "cos_cached",
    "sin_cached",          "causal_mask_cached"};

constexpr std::string_view kMegalodonBuffers[] = {"inner.rope.inv_freq"};

std::string_view textOf(const OwnModel &model) {
  return std::ranges::find(kTexts, model.name,
                           &std::pair<std::string_view, std::string_view>::first)
      ->second;
}

/// Of a file that megalodon-jax wrote.
std::optional<OwnModel> fromMetadata(const fs::path &file) {
  const support::SafetensorsFile weights(file);
  const support::SafetensorsMetadata &metadata = weights.metadata();
  const auto find = [&](const char *key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  if (find("format") != "megalodon-jax")
    return std::nullopt;
  for (const auto &[key, expected] : {std::pair<const char *, const char *>("format_version", "2"),
                                      {"rope_layout", "adjacent_pair"},
                                      {"normalization_storage", "plus_one"}})
    if (find(key) != expected)
      fail("{}: the metadata has the {} '{}'; expected {}", weights.name(), key, shown(find(key)),
           expected);
  const std::string text = find("config_json"), place = weights.name() + ": config_json";
  auto json = nlohmann::ordered_json::parse(text, support::JsonGuard(place),
                                            /*allow_exceptions=*/false);
  if (!json.is_object() || support::hasZeroByte(text))
    fail("{}: the metadata has no config_json that is an object", weights.name());
  Config config(std::move(json), place);
  OwnModel model = readMegalodonJax(config);
  config.finish("a checkpoint of megalodon-jax");
  return model;
}

} // namespace

std::optional<OwnModel> findOwnModel(const fs::path &source) {
  std::error_code unknown;
  if (!fs::is_directory(source, unknown))
    return isThere(source) ? fromMetadata(source) : std::nullopt;
  if (const fs::path path = source / "config.json"; isThere(path)) {
    Config config = Config::open(path);
    if (!config.json().contains("model_type") || config.json()["model_type"] != "megalodon")
      return std::nullopt;
    config.text("model_type");
    const char *expected = "MegalodonForCausalLM";
    if (const auto classes = config.findTexts("architectures");
        classes && std::ranges::find(*classes, expected) == classes->end())
      config.reject("architectures", expected);
    OwnModel model = readMegalodonHf(config);
    ignoreHarmless(config);
    config.finish("model_type 'megalodon'");
    return model;
  }
  if (const fs::path path = source / "meta.json"; isThere(path)) {
    Config meta = Config::open(path);
    std::optional<Config> config = meta.findObject("cfg");
    if (!config)
      fail("{}: has no cfg; expected the configuration of a TTT", meta.where());
    OwnModel model = readTtt(*config);
    config->finish("a checkpoint of a TTT");
    return model;
  }
  const fs::path weights = source / "model.safetensors";
  return isThere(weights) ? fromMetadata(weights) : std::nullopt;
}

std::string freePreset(const OwnModel &model, std::string preset) {
  const std::string_view text = textOf(model);
  while (text.find(fmt::format("hydra.preset {} ", symbolText(preset))) != std::string_view::npos ||
         text.find(fmt::format("hydra.preset {}\n", symbolText(preset))) != std::string_view::npos)
    preset += "-checkpoint";
  return preset;
}

std::string ownModelText(const OwnModel &model, std::string_view preset) {
  std::string text(textOf(model)), values;
  for (const auto &[symbol, value] : model.symbols)
    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", symbol, value);
  const size_t presets = text.find("  hydra.preset @");
  text.insert(presets, fmt::format("  hydra.preset {} {{{}}}\n", symbolText(preset), values));
  return text;
}

std::span<const std::string_view> buffersOf(std::string_view model) {
  if (model == "hydra")
    return kHydraBuffers;
  if (model == "megalodon")
    return kMegalodonBuffers;
  return {};
}

} // namespace hydra::frontend
