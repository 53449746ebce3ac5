// The first half of a model file: symbols, preset, group, parameters.
#pragma once

#include "frontend/Architecture.h"

#include <string>
#include <string_view>

namespace hydra::frontend {

std::string declarations(const Architecture &architecture, std::string_view preset);

} // namespace hydra::frontend
