// The layers of a model: attention, MLP, and where norms stand between them.
#pragma once

#include "frontend/ModelWords.h"

#include <string>

namespace hydra::frontend {

/// The definitions that layers call, each with an empty line before it; may be empty.
std::string blockDefinitions(const ModelWords &words);

/// The body of `hydra.for`: from `%x` to what it yields.
std::string blockBody(const ModelWords &words);

/// A value normed as the architecture does it: `rms_norm(%x, @norm1, eps = eps)`.
std::string normed(const ModelWords &words, const std::string &value, const std::string &weight);

} // namespace hydra::frontend
