// The one exception type of the runtime, and the helper that formats and throws it.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace hydra::support {

/// Replaces control characters (a name read from a file may hold a newline) by `?`, so that a
/// message stays on one line whatever it quotes.
inline std::string oneLine(std::string text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return text;
}

/// What went wrong, in one line: where, what was found, what was expected.
class Error : public std::runtime_error {
public:
  explicit Error(std::string message) : std::runtime_error(oneLine(std::move(message))) {}
};

/// Throws Error with a message in fmt syntax: `fail("{}: {} bytes; expected {}", path, n, m)`.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args &&...args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

/// The system's text for an errno value, e.g. "No space left on device".
inline std::string errnoText(int code) { return std::generic_category().message(code); }

} // namespace hydra::support
