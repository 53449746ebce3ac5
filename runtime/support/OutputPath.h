// Where something is written, and what messages call that.
#pragma once

#include <concepts>
#include <filesystem>
#include <string_view>
#include <utility>

namespace hydra::support {

/// The path of a file or folder to write. In a folder that has its name once it is complete, a file
/// is shown under the path that it will have: the one that was asked for.
struct OutputPath {
  template <typename Path>
    requires std::convertible_to<Path &&, std::filesystem::path>
  OutputPath(Path &&path) : place(std::forward<Path>(path)), shown(place) {}
  OutputPath(std::filesystem::path place, std::filesystem::path shown)
      : place(std::move(place)), shown(std::move(shown)) {}

  OutputPath operator/(std::string_view name) const { return {place / name, shown / name}; }

  std::filesystem::path place, shown;
};

} // namespace hydra::support
