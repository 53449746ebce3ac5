// White space around tags goes as Jinja's own lexer has it.
#include "runtime/text/JinjaLexer.h"

#include "runtime/support/Error.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace hydra::text::jinja {

using support::fail;

namespace {

/// Longer ones first.
constexpr std::array<std::string_view, 27> kSigns = {
    "==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "<", ">",
    "=",  "(",  ")",  "[",  "]",  "{",  "}", ",", ":", ".", "|", ";", "!"};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameBegin(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// One template, from front to back.
class Lexer {
public:
  explicit Lexer(std::string_view source) {
    // Every kind of line break is one character, and one at the very end is none.
    text = source;
    replaceAll(text, "\r\n", "\n");
    replaceAll(text, "\r", "\n");
    if (text.ends_with('\n'))
      text.pop_back();
    rest = text;
  }

  std::vector<Piece> run() {
    for (;;) {
      const size_t tag = findTag();
      addText(tag);
      if (rest.empty())
        return std::move(found);
      const char kind = rest[1];
      rest.remove_prefix(2);
      if (rest.starts_with('-') || rest.starts_with('+'))
        rest.remove_prefix(1);
      if (kind == '#')
        skipComment();
      else
        addTag(kind == '{' ? Piece::Kind::print : Piece::Kind::statement);
    }
  }

private:
  /// Where the next tag begins, or the end.
  size_t findTag() const {
    for (size_t at = 0; (at = rest.find('{', at)) != rest.npos; ++at)
      if (at + 1 < rest.size() && std::string_view("{%#").find(rest[at + 1]) != rest.npos)
        return at;
    return rest.size();
  }

  /// The text in front of a tag, without what the tags around it take away.
  void addText(size_t size) {
    std::string_view said = rest.substr(0, size);
    rest.remove_prefix(size);
    if (!rest.empty()) {
      const char sign = rest.size() > 2 ? rest[2] : ' ';
      if (sign == '-')
        said = strippedRight(said);
      else if (sign != '+' && rest[1] != '{')
        said = withoutIndent(said);
    }
    if (!said.empty())
      found.push_back({.kind = Piece::Kind::text, .text = std::string(said)});
  }

  /// A tag of a block that is the first in its line takes the spaces in front.
  std::string_view withoutIndent(std::string_view said) const {
    const size_t line = said.rfind('\n');
    if (line == said.npos && !atLineBegin)
      return said;
    const size_t begin = line == said.npos ? 0 : line + 1;
    return std::ranges::all_of(said.substr(begin), isSpace) ? said.substr(0, begin) : said;
  }

  /// Behind a tag: `-` takes all white space; a block or comment without sign its line break.
  void leaveTag(char sign, bool block) {
    const std::string_view before = rest;
    if (sign == '-')
      rest = strippedLeft(rest);
    else if (sign != '+' && block && rest.starts_with('\n'))
      rest.remove_prefix(1);
    const std::string_view taken = before.substr(0, before.size() - rest.size());
    atLineBegin = taken.ends_with('\n');
  }

  void skipComment() {
    const size_t end = rest.find("#}");
    if (end == rest.npos)
      fail("a comment has no end");
    const char sign = end > 0 ? rest[end - 1] : ' ';
    rest.remove_prefix(end + 2);
    leaveTag(sign == '+' || sign == '-' ? sign : ' ', /*block=*/true);
  }

  void addTag(Piece::Kind kind) {
    const std::string_view close = kind == Piece::Kind::print ? "}}" : "%}";
    Piece piece{.kind = kind};
    std::string open; // brackets
    for (;;) {
      rest.remove_prefix(
          static_cast<size_t>(std::ranges::find_if_not(rest, isSpace) - rest.begin()));
      if (rest.empty())
        fail("a tag has no end");
      if (open.empty()) {
        const bool sign = rest[0] == '-' || (rest[0] == '+' && kind == Piece::Kind::statement);
        if (rest.starts_with(close) || (sign && rest.substr(1).starts_with(close))) {
          const char last = sign ? rest[0] : ' ';
          rest.remove_prefix(close.size() + (sign ? 1 : 0));
          leaveTag(last, kind == Piece::Kind::statement);
          piece.tokens.emplace_back();
          found.push_back(std::move(piece));
          return;
        }
      }
      piece.tokens.push_back(token(open));
    }
  }

  Token token(std::string &open) {
    if (isNameBegin(rest[0])) {
      const auto end =
          std::ranges::find_if_not(rest, [](char c) { return isNameBegin(c) || isDigit(c); });
      return {.kind = Token::Kind::name, .text = taken(static_cast<size_t>(end - rest.begin()))};
    }
    if (isDigit(rest[0]))
      return integer();
    if (rest[0] == '\'' || rest[0] == '"')
      return quoted();
    const auto *const sign =
        std::ranges::find_if(kSigns, [&](std::string_view s) { return rest.starts_with(s); });
    if (sign == kSigns.end())
      fail("a tag has the character {}", rest[0]);
    countBrackets(*sign, open);
    return {.kind = Token::Kind::sign, .text = taken(sign->size())};
  }

  static void countBrackets(std::string_view sign, std::string &open) {
    constexpr std::string_view opening = "([{", closing = ")]}";
    if (sign.size() != 1)
      return;
    if (opening.find(sign[0]) != opening.npos) {
      open += sign;
    } else if (const size_t kind = closing.find(sign[0]); kind != closing.npos) {
      if (open.empty() || open.back() != opening[kind])
        fail("a tag has {} without {}", sign, opening[kind]);
      open.pop_back();
    }
  }

  Token integer() {
    Token number{.kind = Token::Kind::integer};
    const char *const begin = &rest.front();
    const auto [at, error] = std::from_chars(begin, begin + rest.size(), number.number);
    const auto size = static_cast<size_t>(at - begin);
    if (error != std::errc() || (size < rest.size() && isNameBegin(rest[size])) ||
        (size + 1 < rest.size() && rest[size] == '.' && isDigit(rest[size + 1])))
      fail("a tag has a number that is no integer of 64 bits");
    number.text = taken(size);
    return number;
  }

  Token quoted() {
    Token said{.kind = Token::Kind::text};
    const char quote = rest[0];
    size_t at = 1;
    for (; at < rest.size() && rest[at] != quote; ++at) {
      if (rest[at] != '\\') {
        said.text += rest[at];
        continue;
      }
      if (++at == rest.size())
        break;
      constexpr std::string_view names = "ntr\\'\"bfv", values = "\n\t\r\\'\"\b\f\v";
      if (const size_t known = names.find(rest[at]); known != names.npos)
        said.text += values[known];
      else if (std::string_view("01234567xuUNa\n").find(rest[at]) != rest.npos)
        fail("a text in quotes has the escape \\{}", rest[at]);
      else
        (said.text += '\\') += rest[at];
    }
    if (at == rest.size())
      fail("a text in quotes has no end");
    rest.remove_prefix(at + 1);
    return said;
  }

  std::string taken(size_t size) {
    std::string word(rest.substr(0, size));
    rest.remove_prefix(size);
    return word;
  }

  std::string text;
  std::string_view rest;
  bool atLineBegin = true;
  std::vector<Piece> found;
};

} // namespace

std::vector<Piece> pieces(std::string_view source) { return Lexer(source).run(); }

} // namespace hydra::text::jinja
