// An architecture as a model file, as a person would have written it.
#pragma once

#include "frontend/Architecture.h"

#include <string>
#include <string_view>

namespace hydra::frontend {

/// The text of a model with the entries `loss` and `logits`. The numbers of the architecture are
/// those of its one preset, called `preset` (a plain name); its parameters say from which tensors
/// they come.
std::string modelText(const Architecture &architecture, std::string_view preset);

} // namespace hydra::frontend
