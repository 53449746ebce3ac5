// A file that is there and written in places, perhaps by several processes.
#pragma once

#include "runtime/support/OutputPath.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hydra::support {

class OutputFile {
public:
  /// Opens a regular file of `size` bytes. Every Error begins with `cannot write` and the path as
  /// it is shown.
  OutputFile(const OutputPath &path, uint64_t size);
  ~OutputFile();
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;

  /// Bytes [offset, offset + bytes.size()), which the file must have.
  void write(uint64_t offset, std::span<const std::byte> bytes);

  /// Waits until what was written is on the disk, and closes the file.
  void close();

private:
  [[noreturn]] void failWith(const char *action, int code) const;

  std::string shown; // for messages
  int descriptor;
};

} // namespace hydra::support
