// What JSON texts may not have.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace hydra::support {

/// Where a text has its first zero byte; npos where it has none. nlohmann/json takes one for the
/// end of a text and would ignore what follows, so what reads JSON refuses it.
inline size_t zeroByteIn(std::string_view text) { return text.find('\0'); }
inline size_t zeroByteIn(std::span<const std::byte> bytes) {
  return zeroByteIn(std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

/// Whether it has one.
template <typename Text> bool hasZeroByte(const Text &text) {
  return zeroByteIn(text) != std::string_view::npos;
}

} // namespace hydra::support
