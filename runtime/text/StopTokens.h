// Which tokens end a generated text.
#pragma once

#include "runtime/text/Tokenizer.h"

#include <filesystem>
#include <string>
#include <vector>

namespace hydra::text {

/// The ids behind which a text ends, ascending, as files beside a tokenizer's say. Throws Error
/// that names file and field.
std::vector<int32_t> readStopTokens(const std::filesystem::path &tokenizer,
                                    const Tokenizer &tokens);

/// A file of JSON. Throws Error where it cannot be read, or is larger than any such file.
std::string readJsonFile(const std::filesystem::path &path);

} // namespace hydra::text
