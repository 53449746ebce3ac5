// Properties of characters, and the normalization forms of Unicode.
#pragma once

#include <string>
#include <string_view>

namespace hydra::text {

/// The property White_Space.
bool isWhitespace(char32_t c);
/// The categories P*, and the other characters of ASCII that are neither letters, digits, space nor
/// control characters.
bool isPunctuation(char32_t c);
/// Nd, Nl, No.
bool isNumeric(char32_t c);
/// What `\w` means: letters, marks, decimal digits, letter numbers, connecting punctuation,
/// joiners.
bool isWord(char32_t c);
/// Mn.
bool isNonspacingMark(char32_t c);
/// Mn, Mc, Me.
bool isMark(char32_t c);
/// Cc, Cf, Cs, Co.
bool isOther(char32_t c);

/// A valid text without white space at its beginning, or its end; for Python, whose `str.strip`
/// this is, four separators (U+001C to U+001F) are white space too.
std::string_view strippedLeft(std::string_view text);
std::string_view strippedRight(std::string_view text);
inline std::string_view stripped(std::string_view text) {
  return strippedLeft(strippedRight(text));
}

/// Appends the lower case of a character.
void appendLowercase(std::string &text, char32_t c);

/// A character without case (the full folding of Unicode), which may be several: that of U+DF is
/// `ss`.
std::u32string folded(char32_t c);
/// The characters whose folding is several, in the order of their code points.
const std::u32string &foldedToSeveral();

enum class Form { nfc, nfd, nfkc, nfkd };

/// A valid text in another form.
std::string normalized(std::string_view text, Form form);

/// Bytes of the first extended grapheme cluster of a valid text, which is not empty.
size_t firstCluster(std::string_view text);

} // namespace hydra::text
