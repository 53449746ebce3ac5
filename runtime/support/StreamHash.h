// XXH3-64 of bytes that come one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hydra::support {

class StreamHash {
public:
  explicit StreamHash(uint64_t seed = 0);

  /// As if it were new.
  void restart(uint64_t seed);
  void add(std::span<const std::byte> bytes);
  /// Of the bytes so far.
  uint64_t value() const;

private:
  struct Free {
    void operator()(void *state) const;
  };
  std::unique_ptr<void, Free> state; // of the library
};

} // namespace hydra::support
