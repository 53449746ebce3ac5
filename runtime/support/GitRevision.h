// Which version of a file's repository is checked out.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hydra::support {

/// The commit that is checked out where a file is, as 40 (or 64) hexadecimal digits, read from the
/// repository's files; nothing where the file is missing or in no repository. Whether the file has
/// been changed since is not looked at.
std::optional<std::string> gitRevision(const std::filesystem::path &file);

} // namespace hydra::support
