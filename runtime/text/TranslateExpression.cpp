// Expressions in the syntax of Oniguruma (its default, that of Ruby) as PCRE2 understands them.
#include "runtime/text/Expression.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

// The insides of classes. PCRE2 counts U+180E as space, and other characters as parts of words.
constexpr std::string_view kSpace =
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}"
    "\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view kNoSpace =
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x84\\x86-\\x9f\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
    "\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}";
constexpr std::string_view kWord = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}"
                                   "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}"
                                   "\\x{1f170}-\\x{1f189}";
// Where it stands alone, Oniguruma asks a table of Latin-1, by which superscript digits and
// fractions are parts of words too; in a class they are not.
constexpr std::string_view kWordAlone = "\\xb2\\xb3\\xb9\\xbc-\\xbe";

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool isIn(char c, std::string_view all) { return all.find(c) != std::string_view::npos; }
bool isAsciiMark(char c) { return c > ' ' && c < 0x7f && !isDigit(c) && !isLetter(c); }

class Translator {
public:
  explicit Translator(std::string_view pattern) : pattern(pattern) {}

  std::string translate() {
    while (at < pattern.size())
      translatePart();
    endRun();
    if (!groups.empty())
      refuse("a group is not closed");
    return std::move(out);
  }

private:
  [[noreturn]] void refuse(std::string_view what) const {
    support::fail("is the expression '{}', which is not supported: {} at byte {}",
                  support::shown(pattern), what, at);
  }

  bool startsWith(std::string_view text) const { return pattern.substr(at).starts_with(text); }
  char peek(size_t ahead = 0) const {
    return at + ahead < pattern.size() ? pattern[at + ahead] : '\0';
  }

  void translatePart() {
    const char c = pattern[at];
    switch (c) {
    case '(':
      return openGroup();
    case ')':
      if (groups.empty())
        refuse("')' closes no group");
      atom = groups.back().begin;
      groups.pop_back();
      out += ')';
      ++at;
      letterIsLast = false;
      return;
    case '|':
    case '^':
    case '$':
      endRun();
      atom = std::string::npos;
      out += c;
      ++at;
      return;
    case '*':
    case '+':
    case '?':
      return quantify(std::string(1, c), 1, false);
    case '{':
      return openInterval();
    case '[':
      endRun();
      atom = out.size();
      out += readClass();
      return;
    case '\\':
      return escape();
    case '.':
      endRun();
      atom = out.size();
      out += c;
      ++at;
      return;
    default:
      atom = out.size();
      out += literal();
      takeLetter();
    }
  }

  bool isCaseless() const { return !groups.empty() && groups.back().caseless; }

  /// Oniguruma takes several letters for one that they are without case, and one for several: `ss`
  /// for U+DF. PCRE2 compares one by one.
  [[noreturn]] void refuseFolding(char32_t c) const {
    std::string one, several;
    appendUtf8(one, c);
    for (const char32_t letter : folded(c))
      appendUtf8(several, letter);
    refuse(fmt::format("'{}' without case, which is '{}' as well,", one, several));
  }

  /// Behind what stands for the character `code`.
  void takeLetter() {
    if (!isCaseless())
      return endRun();
    const std::u32string letters = folded(code);
    if (letters.size() > 1)
      refuseFolding(code);
    run += letters;
    letterIsLast = true;
  }

  /// Behind neighbouring letters, in one group or several.
  void endRun() {
    if (run.size() > 1)
      for (const char32_t c : foldedToSeveral())
        if (run.find(folded(c)) != std::u32string::npos)
          refuseFolding(c);
    run.clear();
    letterIsLast = false;
  }

  /// A character that means itself.
  std::string literal() {
    const Character c = firstCharacter(pattern.substr(at));
    std::string text(pattern.substr(at, c.bytes));
    code = c.code;
    at += c.bytes;
    return text.size() == 1 && isAsciiMark(text[0]) ? "\\" + text : text;
  }

  void openGroup() {
    constexpr std::array<std::string_view, 6> known = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    const size_t begin = out.size();
    bool caseless = isCaseless();
    letterIsLast = false;
    for (const std::string_view kind : known) {
      if (startsWith(kind)) {
        out += kind;
        at += kind.size();
        groups.push_back({begin, caseless});
        return;
      }
    }
    if (startsWith("(?i:") || startsWith("(?-i:")) {
      caseless = startsWith("(?i:");
      const size_t size = caseless ? 4 : 5;
      out += pattern.substr(at, size);
      at += size;
    } else if (peek(1) == '?' || peek(1) == '*') {
      refuse("a group of this kind");
    } else {
      out += "(?:"; // nothing refers to what it captures
      ++at;
    }
    groups.push_back({begin, caseless});
  }

  /// A number of repetitions in braces, or the brace itself.
  void openInterval() {
    size_t end = at + 1;
    const auto number = [&] {
      const size_t begin = end;
      while (end < pattern.size() && isDigit(pattern[end]))
        ++end;
      return std::string(pattern.substr(begin, end - begin));
    };
    const std::string least = number();
    std::string most = least;
    bool range = false;
    if (end < pattern.size() && pattern[end] == ',') {
      range = true;
      ++end;
      most = number();
    }
    if (end == pattern.size() || pattern[end] != '}' || (least.empty() && most.empty())) {
      atom = out.size();
      out += "\\{";
      code = '{';
      takeLetter();
      ++at;
      return;
    }
    const std::string text = !range          ? "{" + least + "}"
                             : least.empty() ? "{0," + most + "}"
                                             : "{" + least + "," + most + "}";
    if (!range && end + 1 < pattern.size() && pattern[end + 1] == '?')
      refuse("'?' behind a fixed number of repetitions");
    quantify(text, end + 1 - at, true);
  }

  void quantify(const std::string &text, size_t size, bool interval) {
    if (atom == std::string::npos)
      refuse("a repetition of nothing");
    if (letterIsLast) // it alone is repeated
      run.pop_back();
    endRun();
    at += size;
    out += text;
    if (peek() == '?' || (peek() == '+' && !interval)) {
      out += peek();
      ++at;
    }
    // What is repeated may be repeated again, by what PCRE2 would take for a part of the first.
    if (peek() == '+' || peek() == '*' || peek() == '?') {
      out.insert(atom, "(?:");
      out += ')';
    }
  }

  /// Behind a backslash, outside of a class.
  void escape() {
    atom = out.size();
    const char kind = peek(1);
    if (isIn(kind, "sSwWbBAzZ"))
      endRun();
    switch (kind) {
    case 's':
      at += 2;
      out += fmt::format("[{}]", kSpace);
      return;
    case 'S':
      at += 2;
      out += fmt::format("[^{}]", kSpace);
      return;
    case 'w':
      at += 2;
      out += fmt::format("[{}{}]", kWord, kWordAlone);
      return;
    case 'W':
      at += 2;
      out += fmt::format("[^{}{}]", kWord, kWordAlone);
      return;
    case 'b':
    case 'B': {
      const bool inside = peek(1) == 'B';
      at += 2;
      out += fmt::format("(?:(?<=[{0}{1}])(?{2}[{0}{1}])|(?<![{0}{1}])(?{3}[{0}{1}]))", kWord,
                         kWordAlone, inside ? "=" : "!", inside ? "!" : "=");
      atom = std::string::npos;
      return;
    }
    case 'A':
    case 'z':
    case 'Z':
      out += pattern.substr(at, 2);
      at += 2;
      atom = std::string::npos;
      return;
    default:
      out += classEscape();
      if (isIn(kind, "dDpP"))
        endRun();
      else
        takeLetter();
    }
  }

  /// Behind a backslash, what stands for a character or for the inside of a class.
  std::string classEscape() {
    const char c = peek(1);
    switch (c) {
    case 's':
      at += 2;
      return std::string(kSpace);
    case 'S':
      at += 2;
      return std::string(kNoSpace);
    case 'w':
      at += 2;
      return std::string(kWord);
    case 'd':
      at += 2;
      return "\\p{Nd}";
    case 'D':
      at += 2;
      return "\\P{Nd}";
    case 'p':
    case 'P':
      return property();
    case 'n':
    case 'r':
    case 't':
    case 'f':
    case 'a':
    case 'e':
      code = 0; // none with a case
      at += 2;
      return {'\\', c};
    case 'v':
      code = 0;
      at += 2;
      return "\\x0b";
    case 'x':
    case 'u':
      return codePoint();
    default:
      if (!isAsciiMark(c))
        refuse("this '\\'");
      code = static_cast<unsigned char>(c);
      at += 2;
      return {'\\', c};
    }
  }

  std::string codePoint() {
    const bool braces = peek(1) == 'x' && peek(2) == '{';
    const size_t begin = at + (braces ? 3 : 2), most = peek(1) == 'u' ? 4 : braces ? 8 : 2;
    size_t end = begin;
    code = 0;
    for (; end < pattern.size() && end - begin < most; ++end) {
      const char c = pattern[end];
      const int digit = isDigit(c)             ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0)
        break;
      code = code << 4 | static_cast<char32_t>(digit);
    }
    const bool closed = !braces || (end < pattern.size() && pattern[end] == '}');
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (end == begin || !closed || (peek(1) == 'u' && end - begin != 4) || code > 0x10ffff ||
        surrogate || (!braces && peek(1) == 'x' && code >= 0x80))
      refuse("this code point");
    at = end + (braces ? 1 : 0);
    return fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(code));
  }

  std::string property() {
    const size_t end = pattern.find('}', at);
    if (peek(2) != '{' || end == std::string_view::npos)
      refuse("this property");
    std::string_view name = pattern.substr(at + 3, end - at - 3);
    bool negated = peek(1) == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    constexpr std::array<std::string_view, 37> categories = {
        "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
        "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
        "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Co", "Cs", "Cn"};
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> words = {
        {{"Letter", "L"},
         {"Mark", "M"},
         {"Number", "N"},
         {"Punctuation", "P"},
         {"Symbol", "S"},
         {"Separator", "Z"},
         {"Other", "C"}}};
    const char *const sign = negated ? "P" : "p";
    std::string text;
    if (std::find(categories.begin(), categories.end(), name) != categories.end())
      text = fmt::format("\\{}{{{}}}", sign, name);
    for (const auto &[word, category] : words)
      if (name == word)
        text = fmt::format("\\{}{{{}}}", sign, category);
    if (text.empty()) { // a script, or a mistake that PCRE2 reports
      if (name.empty() ||
          !std::all_of(name.begin(), name.end(), [](char c) { return isLetter(c) || c == '_'; }))
        refuse("this property");
      text = fmt::format("\\{}{{sc:{}}}", sign, name);
    }
    at = end + 1;
    return text;
  }

  std::string readClass() {
    std::string text = "[";
    ++at;
    const bool negated = peek() == '^';
    if (negated) {
      text += '^';
      ++at;
    }
    bool first = true;
    while (true) {
      if (at >= pattern.size())
        refuse("a class is not closed");
      if (peek() == ']' && !first) {
        ++at;
        return text + "]";
      }
      if (startsWith("&&"))
        refuse("an intersection of classes");
      if (peek() == '[')
        text += posixClass();
      else
        text += classItem(isCaseless() && !negated);
      first = false;
    }
  }

  std::string posixClass() {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 2> known = {
        {{"[:space:]", kSpace}, {"[:digit:]", "\\p{Nd}"}}};
    for (const auto &[name, inside] : known)
      if (startsWith(name)) {
        at += name.size();
        return std::string(inside);
      }
    refuse("a class in a class");
  }

  /// A character, a range, or what a backslash stands for.
  std::string classItem(bool caseless) {
    bool single = true;
    const auto one = [&] {
      if (peek() != '\\')
        return literal();
      single = !isIn(peek(1), "sSwdDpP");
      return classEscape();
    };
    const auto check = [&](char32_t first, char32_t last) {
      for (const char32_t c : foldedToSeveral())
        if (caseless && c >= first && c <= last)
          refuseFolding(c);
    };
    std::string text = one();
    const char32_t first = code;
    if (!single || peek() != '-' || peek(1) == ']' || at + 1 >= pattern.size()) {
      if (single)
        check(first, first);
      return text;
    }
    ++at;
    if (peek() == '[')
      refuse("a range that ends with a class");
    text += "-" + one();
    if (!single)
      refuse("a range that ends with a class");
    check(first, code);
    return text;
  }

  std::string_view pattern;
  size_t at = 0;
  std::string out;
  size_t atom = std::string::npos; // where what a quantifier repeats begins in `out`
  struct Group {
    size_t begin;  // in `out`
    bool caseless; // what is in it
  };
  std::vector<Group> groups; // that are open
  char32_t code = 0;         // that was read last
  std::u32string run;        // letters without case that follow each other, folded
  bool letterIsLast = false; // whether the last of them is what a quantifier repeats
};

} // namespace

std::string hydra::text::translated(std::string_view pattern) {
  return Translator(pattern).translate();
}
