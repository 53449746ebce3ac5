// Checkpoints of the programs that Hydra's own models come from.
#pragma once

#include "frontend/Config.h"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hydra::frontend {

/// One of the models in `models/`, and the values that its symbols have in a checkpoint.
struct OwnModel {
  std::string_view name; ///< `megalodon`
  std::vector<std::pair<std::string, std::string>> symbols;
};

/// What is said of its model by a directory, or by a file of weights: `config.json` of
/// megalodon-hf, `meta.json` of app4, or the metadata that megalodon-jax writes. Nothing where it
/// is none of these. Throws Error for a field that is not understood, and for values that are not
/// supported.
std::optional<OwnModel> findOwnModel(const std::filesystem::path &source);

/// A name for a preset that the model's file has not: `preset`, with a suffix where it has that.
std::string freePreset(const OwnModel &model, std::string preset);

/// The text of the model's file, with a preset of these values.
std::string ownModelText(const OwnModel &model, std::string_view preset);

/// Endings of names that checkpoints of a model, known by its symbol, have for what are no weights.
std::span<const std::string_view> buffersOf(std::string_view model);

OwnModel readMegalodonHf(Config &config);
OwnModel readMegalodonJax(Config &config);
OwnModel readTtt(Config &config);

} // namespace hydra::frontend
