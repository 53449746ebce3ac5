// A file that is read: nothing but a regular one, and never mapped, so that whoever cuts it
// meanwhile causes an error and no signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hydra::support {

class InputFile {
public:
  /// Throws Error, `cannot read PATH: ...`, also for what is no regular file (a directory, a pipe,
  /// a device), for none of which it waits.
  explicit InputFile(const std::filesystem::path &path);
  ~InputFile();
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;

  /// As messages quote it.
  const std::string &name() const { return shownPath; }
  /// Bytes when it was opened.
  uint64_t size() const { return bytes; }

  /// Bytes [offset, offset + out.size()), which must be below size(). Any number of threads at a
  /// time. Throws Error when the file has become shorter, or the system cannot read it.
  void read(uint64_t offset, std::span<std::byte> out) const;
  /// Bytes [0, size()).
  std::vector<std::byte> readAll() const;

private:
  std::string shownPath;
  int descriptor;
  uint64_t bytes = 0;
};

/// Whether there is something under a path; also a link that leads nowhere, and what cannot be
/// looked up, of which InputFile says why.
bool isThere(const std::filesystem::path &path);

} // namespace hydra::support
