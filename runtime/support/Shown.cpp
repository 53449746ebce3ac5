// Cutting the middle out of long names, and what is no text out of all.
#include "runtime/support/Shown.h"

namespace {

/// How many bytes at the beginning are a character in UTF-8; 0: none begins there.
size_t characterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const size_t bytes = lead < 0x80   ? 1
                       : lead < 0xC2 ? 0
                       : lead < 0xE0 ? 2
                       : lead < 0xF0 ? 3
                       : lead < 0xF5 ? 4
                                     : 0;
  if (bytes > text.size())
    return 0;
  for (size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  // Longer than needed, halves of pairs, and behind the last code point.
  const bool isWrong =
      bytes > 1 && ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) >= 0xA0) ||
                    (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90));
  return isWrong ? 0 : bytes;
}

/// With a question mark for every byte that is part of no character.
std::string readable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = characterBytes(text);
    result += bytes > 0 ? text.substr(0, bytes) : "?";
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return result;
}

} // namespace

namespace hydra::support {

std::string shown(std::string_view text, size_t most) {
  constexpr std::string_view dots = "...";
  if (text.size() <= most)
    return readable(text);
  size_t head = most / 2, tail = text.size() - (most - head - dots.size());
  const auto isInside = [&](size_t at) { return (text[at] & 0xC0) == 0x80; }; // of a character
  while (head > 0 && isInside(head))
    --head;
  while (tail < text.size() && isInside(tail))
    ++tail;
  return readable(text.substr(0, head)) + std::string(dots) + readable(text.substr(tail));
}

std::string shownPath(const std::filesystem::path &path) {
  constexpr size_t most = 240;
  return shown(path.native(), most);
}

} // namespace hydra::support
