// Where compiled code is kept on disk, and how much of it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace hydra {

/// A folder of files of code, and the folders in it that have them too. It holds so many bytes at
/// most: before it would hold more, the files that nobody has used for the longest time go. Several
/// threads and processes may share it; what is removed while another one reads it, it compiles.
/// Nothing that is wrong with a folder is an error: what cannot be removed stays.
struct CodeFolder {
  static constexpr uint64_t kDefaultBytes = uint64_t{2} << 30;

  std::filesystem::path path; ///< empty: nothing is kept
  uint64_t mostBytes = kDefaultBytes;

  /// `$XDG_CACHE_HOME/hydra`, or `~/.cache/hydra`; empty where there is no home.
  static std::filesystem::path defaultPath();

  /// The folder in it of what LLVM compiles: many small files.
  static constexpr const char *kOfLLVM = "llvm";

  /// Counts bytes of a file that was written. Looks at all files once those of all processes since
  /// the last look are a sixteenth of the most.
  void noteWritten(uint64_t bytes) const;
  /// Notes that a file has been read.
  static void noteUsed(const std::filesystem::path &file);

private:
  void removeOldest(uint64_t most) const;
};

} // namespace hydra
