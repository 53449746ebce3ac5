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

/// The file `name` in the folder of a tokenizer, which is a file or that folder (or empty: none);
/// empty where it is not there.
std::filesystem::path findBeside(const std::filesystem::path &tokenizer, const char *name);

/// A file beside a tokenizer, or its own. Throws Error where it cannot be read, or is larger than
/// any such file.
std::string readWholeFile(const std::filesystem::path &path);

} // namespace hydra::text
