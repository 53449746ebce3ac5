// What is put around the tokens of a text.
#pragma once

#include "runtime/text/Fields.h"

#include <cstdint>
#include <vector>

namespace hydra::text {

/// Tokens in front of those of a text, and behind them.
struct Surroundings {
  std::vector<int32_t> before, behind;
};

/// What the post-processor of a file puts around one text. Throws Error that names the field, for
/// ids from `limit` on, and for a template in which the text is not there exactly once.
Surroundings readPostProcessor(const Value &description, int64_t limit);

} // namespace hydra::text
