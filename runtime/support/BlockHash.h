// A hash of a tensor's bytes to which several processes add up what each has.
#pragma once

#include "runtime/support/StreamHash.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace hydra::support {

/// What a part of a tensor's bytes adds to the hash of all: the sum, modulo 2^64, over its blocks i
/// of 64 KiB (the last may be shorter) of XXH3-64 of the block with the seed i. A part counts the
/// blocks whose first byte it has, so parts side by side add up to the hash of the whole.
class BlockHash {
public:
  static constexpr uint64_t kBlock = 65536;

  /// Of a tensor of `size` bytes, the part that begins at byte `begin`.
  BlockHash(uint64_t size, uint64_t begin) : size(size), at(begin) {}

  /// The bytes that follow.
  void add(std::span<const std::byte> bytes);

  /// Where the next bytes belong.
  uint64_t position() const { return at; }
  /// How many of them the last block still needs, which lie behind the part.
  uint64_t missing() const;
  /// Once nothing is missing.
  uint64_t sum() const { return total; }

private:
  uint64_t size;
  uint64_t at;
  uint64_t total = 0;
  uint64_t blockEnd = 0; // of the block that has begun; not above `at`: none has
  StreamHash hash;       // of it
};

} // namespace hydra::support
