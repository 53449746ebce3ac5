// Cutting the middle out of long names.
#include "runtime/support/Shown.h"

#include <fmt/core.h>

namespace hydra::support {

std::string shown(std::string_view text, size_t most) {
  constexpr std::string_view dots = "...";
  if (text.size() <= most)
    return std::string(text);
  size_t head = most / 2, tail = text.size() - (most - head - dots.size());
  const auto isInside = [&](size_t at) { return (text[at] & 0xC0) == 0x80; }; // of a character
  while (head > 0 && isInside(head))
    --head;
  while (tail < text.size() && isInside(tail))
    ++tail;
  return fmt::format("{}{}{}", text.substr(0, head), dots, text.substr(tail));
}

std::string shownPath(const std::filesystem::path &path) {
  constexpr size_t most = 240;
  return shown(path.native(), most);
}

} // namespace hydra::support
