// Rotary positions in a model: `hydra.rope` where it computes them, else definitions of the model.
#pragma once

#include "frontend/ModelWords.h"

#include <string>

namespace hydra::frontend {

/// The definitions that rotary positions need, each with an empty line before it; may be empty.
std::string rotaryDefinitions(const ModelWords &words);

/// A line of the trunk in front of the layers, if there is one.
std::string rotaryTables(const ModelWords &words);

/// A value [B, S, heads, hd] turned. `local`: as in layers with a window, where these have others.
std::string turned(const ModelWords &words, const std::string &value, bool local);

} // namespace hydra::frontend
