// Names that come from users and files, as messages quote them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hydra::support {

/// The text, or of one that is longer than `most` bytes its beginning and end with `...` between:
/// nobody reads a name of 100 kB. Cuts between characters of UTF-8.
std::string shown(std::string_view text, size_t most = 80);

/// The same for a path, which may be longer: one wants to copy it.
std::string shownPath(const std::filesystem::path &path);

} // namespace hydra::support
