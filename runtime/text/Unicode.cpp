// Unicode by utf8proc.
#include "runtime/text/Unicode.h"

#include "runtime/support/Error.h"
#include "runtime/text/Utf8.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

using namespace hydra::text;

namespace {

int categoryOf(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

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

void appendNormalized(std::string &out, std::string_view text, Form form) {
  utf8proc_uint8_t *result = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &result,
      static_cast<utf8proc_option_t>(optionsOf(form)));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  if (size < 0)
    hydra::support::fail("cannot normalize text: {}", utf8proc_errmsg(size));
  out.append(reinterpret_cast<const char *>(result), static_cast<size_t>(size));
}

} // namespace

bool hydra::text::isWhitespace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool hydra::text::isPunctuation(char32_t c) {
  if (c < 0x80)
    return c > 0x20 && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
  const int category = categoryOf(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool hydra::text::isNumeric(char32_t c) {
  const int category = categoryOf(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool hydra::text::isMark(char32_t c) {
  const int category = categoryOf(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool hydra::text::isNonspacingMark(char32_t c) { return categoryOf(c) == UTF8PROC_CATEGORY_MN; }

bool hydra::text::isOther(char32_t c) {
  const int category = categoryOf(c);
  return category == UTF8PROC_CATEGORY_CN || category >= UTF8PROC_CATEGORY_CC;
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

std::string hydra::text::normalized(std::string_view text, Form form) {
  // ASCII is in every form. A character of it composes with what follows only, so that whatever
  // begins with one and goes on without is normalized by itself.
  std::string out;
  out.reserve(text.size());
  size_t done = 0, at = 0;
  while (at < text.size()) {
    if (isAscii(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at > done ? at - 1 : at;
    while (at < text.size() && !isAscii(text[at]))
      ++at;
    out.append(text, done, begin - done);
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
