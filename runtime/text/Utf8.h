// Characters in UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hydra::text {

/// The character at the beginning of a text: its code point and its bytes.
struct Character {
  char32_t code = 0;
  size_t bytes = 0;
};

/// What stands at the beginning of bytes that may be anything.
enum class Utf8 {
  character, // a character
  invalid,   // bytes that begin none; `bytes` of them belong together as one error
  cut,       // the beginning of a character, whose end is missing
};

/// Looks at the beginning of `text`, which is not empty. Of what is invalid or cut, `found.bytes`
/// is the longest part that a character could begin with, at least 1 (Unicode, section 3.9,
/// "substitution of maximal subparts").
Utf8 readUtf8(std::string_view text, Character &found);

/// The first character of valid UTF-8, which is not empty.
inline Character firstCharacter(std::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80)
    return {lead, 1};
  if (lead < 0xe0)
    return {(lead & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (lead < 0xf0)
    return {(lead & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f),
          4};
}

/// The last character of valid UTF-8, which is not empty.
inline Character lastCharacter(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80)
    --begin;
  return firstCharacter(text.substr(begin));
}

/// Appends a character; `code` is a scalar value of Unicode.
void appendUtf8(std::string &text, char32_t code);

/// Where the first byte that is no UTF-8 stands; npos if there is none.
size_t findInvalidUtf8(std::string_view text);

/// Puts `to` wherever `from`, which is not empty, stands; what it is put in is not looked at again.
void replaceAll(std::string &text, std::string_view from, std::string_view to);

/// U+FFFD, which stands for bytes that are no UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

} // namespace hydra::text
