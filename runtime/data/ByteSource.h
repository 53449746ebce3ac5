// Bytes that are read from the beginning to the end, whatever they are packed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace hydra::data {

class ByteSource {
public:
  virtual ~ByteSource() = default;

  /// Fills `out` from its beginning, but for the last bytes of all; returns how many there were, 0
  /// at the end. Throws Error when the bytes are damaged or cannot be read.
  virtual size_t read(std::span<std::byte> out) = 0;
};

/// The bytes of a file. Throws Error as support::InputFile does.
std::unique_ptr<ByteSource> openFile(const std::filesystem::path &path);

/// Whether gzip or zstd has packed what begins with these bytes.
bool isPacked(std::span<const std::byte> begin);

/// What is packed by gzip or zstd, as its first bytes say (also several such files, one behind the
/// other), or the bytes as they are. Takes some 100 kB, for zstd also the window that the file
/// asks for, at most 128 MiB.
std::unique_ptr<ByteSource> unpacked(std::unique_ptr<ByteSource> packed);

} // namespace hydra::data
