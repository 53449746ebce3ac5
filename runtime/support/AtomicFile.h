// A file that appears complete or not at all: written under a temporary name, synced, renamed.
#pragma once

#include "runtime/support/OutputPath.h"
#include "runtime/support/Temporaries.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace hydra::support {

/// Writes to a temporary in the directory of `path`; commit() puts it in the place of `path`. If
/// commit() is never reached, or fails before the rename, or a signal ends the process, the
/// temporary is removed and whatever stood at `path` is untouched. A symbolic link is followed.
/// Every Error names the path as it is shown and the system's reason; `path` must not exist or be a
/// regular file.
class AtomicFile {
public:
  explicit AtomicFile(const OutputPath &path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(std::span<const std::byte> bytes);
  /// From now on it has so many bytes; new ones are zero.
  void resize(uint64_t size);
  /// Where it is until commit(), shown as it is then called.
  OutputPath temporaryPath() const { return {temporary, shown}; }

  /// Syncs the file, renames it, syncs the directory. Once, after the last write.
  void commit();

private:
  [[noreturn]] void failWith(const char *action, int code) const;

  std::filesystem::path shown; // as the caller wrote it, for messages
  std::filesystem::path target;
  std::filesystem::path temporary;
  std::optional<Temporary> removal; // while that exists
  int descriptor = -1; // -1 once committed
};

/// What a folder has been given is still there after the power has failed. Returns 0 or an errno
/// value; 0 too where a file system has no sync of folders.
int syncFolder(const std::filesystem::path &folder);

} // namespace hydra::support
