// Unicode by utf8proc.
#include "runtime/text/Unicode.h"

#include "runtime/support/Error.h"
#include "runtime/text/Utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

using namespace hydra::text;

namespace {

int categoryOf(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

// Tokenizers are made by a library that normalizes as Unicode 9 does, and knows the punctuation and
// other categories of Unicode 8: to it these characters, which came later, are like unassigned
// ones. Gaps between them hold characters for which it makes no difference.
using Ranges = std::span<const std::pair<char32_t, char32_t>>;
constexpr std::array<std::pair<char32_t, char32_t>, 52> kBehindUnicode9 = {
    {{0x61d, 0x61d},     {0x7fd, 0x7fd},     {0x890, 0x8d3},     {0x8e2, 0x8e2},
     {0x9fd, 0x9fe},     {0xa76, 0xa76},     {0xafa, 0xaff},     {0xb55, 0xb55},
     {0xc04, 0xc3c},     {0xc77, 0xc77},     {0xc84, 0xc84},     {0xcf3, 0xd00},
     {0xd3b, 0xd3c},     {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},
     {0x1715, 0x1715},   {0x180f, 0x180f},   {0x1abf, 0x1ace},   {0x1b7d, 0x1b7e},
     {0x1cf7, 0x1cf7},   {0x1df6, 0x1dfa},   {0x2e43, 0x2e5d},   {0x32ff, 0x32ff},
     {0xa7f2, 0xa7f4},   {0xa82c, 0xa82c},   {0xa8ff, 0xa8ff},   {0xab69, 0xab69},
     {0x10781, 0x107ba}, {0x10d24, 0x10f89}, {0x11070, 0x11074}, {0x110c2, 0x110cd},
     {0x11145, 0x11146}, {0x111ce, 0x111cf}, {0x11241, 0x11241}, {0x1133b, 0x1133b},
     {0x1144b, 0x1145e}, {0x11660, 0x1166c}, {0x116b9, 0x116b9}, {0x1182c, 0x11b09},
     {0x11c41, 0x11c71}, {0x11d31, 0x11fff}, {0x12ff1, 0x12ff2}, {0x13430, 0x13455},
     {0x16e97, 0x16f4f}, {0x16f7f, 0x16f87}, {0x16fe2, 0x16ff1}, {0x1cf00, 0x1cf46},
     {0x1e030, 0x1e4ef}, {0x1e95e, 0x1e95f}, {0x1f16c, 0x1f16c}, {0x1fbf0, 0x1fbf9}}};
constexpr std::array<std::pair<char32_t, char32_t>, 18> kOfUnicode9 = {{{0x8d4, 0x8e1},
                                                                        {0x1885, 0x1886},
                                                                        {0x1cf2, 0x1cf3},
                                                                        {0x1dfb, 0x1dfb},
                                                                        {0xa8c5, 0xa8c5},
                                                                        {0xa9bd, 0xa9bd},
                                                                        {0x1123e, 0x1123e},
                                                                        {0x11438, 0x1143f},
                                                                        {0x11442, 0x11444},
                                                                        {0x11446, 0x11446},
                                                                        {0x11c30, 0x11c3d},
                                                                        {0x11c3f, 0x11c3f},
                                                                        {0x11c92, 0x11ca7},
                                                                        {0x11caa, 0x11cb0},
                                                                        {0x11cb2, 0x11cb3},
                                                                        {0x11cb5, 0x11cb6},
                                                                        {0x1e000, 0x1e02a},
                                                                        {0x1e944, 0x1e94a}}};

bool isIn(Ranges ranges, char32_t c) {
  const auto range = std::partition_point(ranges.begin(), ranges.end(),
                                          [&](const auto &r) { return r.second < c; });
  return range != ranges.end() && c >= range->first;
}

// Whose categories were others then.
bool wasPunctuation(char32_t c) { return c == 0x166d || c == 0x111c9; }
bool wasSpacingMark(char32_t c) { return c == 0x1cf2 || c == 0x1cf3; }
bool wasNonspacingMark(char32_t c) { return c == 0x1734; }

bool isBehindUnicode9(char32_t c) { return isIn(kBehindUnicode9, c); }
bool isBehindUnicode8(char32_t c) { return isIn(kOfUnicode9, c) || isBehindUnicode9(c); }

bool isAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

int optionsOf(Form form) {
  switch (form) {
  case Form::nfc:
    return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
  case Form::nfd:
    return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  case Form::nfkc:
    return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
  case Form::nfkd:
    return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

/// Appends what a character is decomposed to.
void appendDecomposed(std::vector<utf8proc_int32_t> &codes, char32_t c, utf8proc_option_t options) {
  constexpr size_t most = 32; // of any character; 18 are known
  const size_t before = codes.size();
  codes.resize(before + most);
  int boundary = 0;
  const utf8proc_ssize_t size = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), codes.data() + before, most, options, &boundary);
  if (size < 0)
    hydra::support::fail("cannot normalize text: {}", utf8proc_errmsg(size));
  codes.resize(before + static_cast<size_t>(size));
}

/// The canonical order of marks, as Unicode has it (section 3.11). utf8proc_decompose has it too,
/// in time that is quadratic in how many marks stand in a row.
void orderMarks(std::vector<utf8proc_int32_t> &codes) {
  const auto classOf = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  const auto isMark = [&](utf8proc_int32_t code) { return classOf(code) != 0; };
  for (auto end = codes.begin(); end != codes.end();) {
    const auto begin = std::find_if(end, codes.end(), isMark);
    end = std::find_if_not(begin, codes.end(), isMark);
    std::ranges::stable_sort(begin, end, {}, classOf);
  }
}

void appendNormalized(std::string &out, std::string_view text, Form form) {
  if (text.empty())
    return;
  const auto options = static_cast<utf8proc_option_t>(optionsOf(form));
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const Character c = firstCharacter(rest);
    appendDecomposed(codes, c.code, options);
    rest.remove_prefix(c.bytes);
  }
  orderMarks(codes);
  const auto length = static_cast<utf8proc_ssize_t>(codes.size());
  codes.push_back(0); // room for what ends the text
  const utf8proc_ssize_t size = utf8proc_reencode(codes.data(), length, options);
  if (size < 0)
    hydra::support::fail("cannot normalize text: {}", utf8proc_errmsg(size));
  out.append(reinterpret_cast<const char *>(codes.data()), static_cast<size_t>(size));
}

} // namespace

static bool isStripped(char32_t c) { return isWhitespace(c) || (c >= 0x1c && c <= 0x1f); }

std::string_view hydra::text::strippedLeft(std::string_view text) {
  while (!text.empty() && isStripped(firstCharacter(text).code))
    text.remove_prefix(firstCharacter(text).bytes);
  return text;
}

std::string_view hydra::text::strippedRight(std::string_view text) {
  while (!text.empty() && isStripped(lastCharacter(text).code))
    text.remove_suffix(lastCharacter(text).bytes);
  return text;
}

bool hydra::text::isWhitespace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool hydra::text::isPunctuation(char32_t c) {
  if (c < 0x80)
    return c > 0x20 && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
  if (wasPunctuation(c))
    return true;
  const int category = categoryOf(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO &&
         !isBehindUnicode8(c);
}

bool hydra::text::isNumeric(char32_t c) {
  const int category = categoryOf(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool hydra::text::isMark(char32_t c) {
  const int category = categoryOf(c);
  const bool mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
  return (mark && !wasPunctuation(c) && !isBehindUnicode9(c)) || wasSpacingMark(c);
}

bool hydra::text::isNonspacingMark(char32_t c) {
  const bool mark = categoryOf(c) == UTF8PROC_CATEGORY_MN;
  return (mark && !wasPunctuation(c) && !isBehindUnicode8(c)) || wasNonspacingMark(c);
}

bool hydra::text::isOther(char32_t c) {
  const int category = categoryOf(c);
  return category >= UTF8PROC_CATEGORY_CC && !isBehindUnicode8(c);
}

bool hydra::text::isWord(char32_t c) {
  if (c < 0x80)
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  const int category = categoryOf(c);
  // Letters, marks, decimal digits and letter numbers stand in this order. The symbols that are
  // alphabetic are letters in circles and squares.
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d ||
         (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

void hydra::text::appendLowercase(std::string &text, char32_t c) {
  constexpr char32_t dottedCapitalI = 0x130;
  if (c == dottedCapitalI)
    text += "i\xcc\x87"; // the one character whose lower case is two
  else
    appendUtf8(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::u32string hydra::text::folded(char32_t c) {
  std::array<utf8proc_int32_t, 4> codes = {};
  int boundary = 0;
  const utf8proc_ssize_t size = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), codes.data(), codes.size(), UTF8PROC_CASEFOLD, &boundary);
  const auto known = static_cast<size_t>(std::clamp<utf8proc_ssize_t>(size, 0, codes.size()));
  return {codes.begin(), codes.begin() + known};
}

const std::u32string &hydra::text::foldedToSeveral() {
  static const std::u32string all = [] {
    std::u32string found;
    constexpr char32_t behindLigatures = 0xfb18; // the last of them
    for (char32_t c = 0x80; c < behindLigatures; ++c)
      if (folded(c).size() > 1)
        found += c;
    return found;
  }();
  return all;
}

std::string hydra::text::normalized(std::string_view text, Form form) {
  // ASCII is in every form. A character of it composes with what follows only, so that whatever
  // begins with one and goes on without is normalized by itself. What
  // came behind Unicode 9 stays as it is.
  std::string out;
  out.reserve(text.size());
  size_t done = 0, at = 0;
  while (at < text.size()) {
    if (isAscii(text[at])) {
      ++at;
      continue;
    }
    size_t begin = at > done ? at - 1 : at;
    out.append(text, done, begin - done);
    while (at < text.size() && !isAscii(text[at])) {
      const Character c = firstCharacter(text.substr(at));
      if (isBehindUnicode9(c.code)) {
        appendNormalized(out, text.substr(begin, at - begin), form);
        out.append(text, at, c.bytes);
        begin = at + c.bytes;
      }
      at += c.bytes;
    }
    appendNormalized(out, text.substr(begin, at - begin), form);
    done = at;
  }
  return out.append(text, done);
}

size_t hydra::text::firstCluster(std::string_view text) {
  Character before = firstCharacter(text);
  size_t at = before.bytes;
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    const Character next = firstCharacter(text.substr(at));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state))
      break;
    before = next;
    at += next.bytes;
  }
  return at;
}
