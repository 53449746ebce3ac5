// The architectures that can be imported: the one table that goes by their names.
#pragma once

#include "frontend/Architecture.h"
#include "frontend/Config.h"

#include <span>
#include <string_view>

namespace hydra::frontend {

struct Family {
  std::string_view type;      ///< `model_type` of its configurations
  std::string_view className; ///< the one of `architectures` that predicts the next token
  Architecture (*read)(Config &config);
};

std::span<const Family> families();

/// Reads a configuration completely. Throws Error for a family that is not in the table, a field
/// that is not understood, and values that are not supported.
Architecture readArchitecture(Config config);

/// Says of the fields that say nothing of what a model computes that they do not matter.
void ignoreHarmless(Config &config);

Architecture readGemma2(Config &config);
Architecture readGemma3(Config &config);
Architecture readGpt2(Config &config);
Architecture readGptNeoX(Config &config);
Architecture readLlama(Config &config);
Architecture readMistral(Config &config);
Architecture readMixtral(Config &config);
Architecture readOlmo2(Config &config);
Architecture readPhi3(Config &config);
Architecture readQwen2(Config &config);
Architecture readQwen3(Config &config);

} // namespace hydra::frontend
