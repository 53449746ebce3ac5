// Token files that `--data` reads.
#pragma once

#include "runtime/support/AtomicFile.h"

#include <cstdint>
#include <filesystem>
#include <span>

namespace hydra::data {

/// Writes little-endian tokens behind llm.c's header: uint16 where all ids are below 65,536, else
/// uint32. The file appears when it is complete, or not at all.
class TokenFileWriter {
public:
  /// `idLimit`: one above the largest id. Throws Error as AtomicFile does.
  TokenFileWriter(const std::filesystem::path &path, int64_t idLimit);

  /// Appends tokens, which are in [0, idLimit). Throws Error when the file cannot be written, or
  /// has more tokens than its header can say.
  void write(std::span<const int32_t> ids);
  void commit();

  uint64_t tokens() const { return count; }
  size_t width() const { return bytes; } // of a token

private:
  support::AtomicFile file;
  size_t bytes;
  uint64_t count = 0;
};

} // namespace hydra::data
