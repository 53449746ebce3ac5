// Patterns in tokenizer files.
#pragma once

#include "runtime/text/Expression.h"
#include "runtime/text/Fields.h"

namespace hydra::text {

/// What `{"String": "..."}` or `{"Regex": "..."}` describes. Throws Error that names the field.
Pattern makePattern(const Value &description);

} // namespace hydra::text
