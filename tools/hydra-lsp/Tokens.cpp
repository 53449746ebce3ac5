// The tokens of a model's text.
#include "tools/hydra-lsp/Tokens.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace hydra::lsp {

static bool beginsWord(char c) { return isAlpha(c) || c == '_'; }
static bool continuesWord(char c) { return isAlnum(c) || c == '_' || c == '$' || c == '.'; }
/// MLIR takes `%x-1` for one name.
static bool continuesName(char c) { return continuesWord(c) || c == '-'; }

/// The length of the string at the beginning of a text, which ends with its line at the latest.
static size_t stringLength(StringRef text) {
  size_t at = 1;
  while (at < text.size() && text[at] != '"' && text[at] != '\n')
    at += text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n' ? 2 : 1;
  return std::min(at + (at < text.size() && text[at] == '"'), text.size());
}

static size_t numberLength(StringRef text) {
  auto isExponent = [&](size_t at) {
    return at > 0 && (text[at] == 'e' || text[at] == 'E') && at + 1 < text.size() &&
           (isDigit(text[at + 1]) || ((text[at + 1] == '+' || text[at + 1] == '-') &&
                                      at + 2 < text.size() && isDigit(text[at + 2])));
  };
  size_t at = 1;
  while (at < text.size() && (isDigit(text[at]) || text[at] == '.' || isExponent(at)))
    at += isExponent(at) ? 2 : 1;
  return at;
}

static std::pair<TokenKind, size_t> tokenOf(StringRef text) {
  const char c = text[0], after = text.size() > 1 ? text[1] : ' ';
  if (text.starts_with("//"))
    return {TokenKind::Comment,
            text.take_until([](char c) { return c == '\n' || c == '\r'; }).size()};
  if (c == '"')
    return {TokenKind::String, stringLength(text)};
  if (c == '@' && after == '"')
    return {TokenKind::Symbol, 1 + stringLength(text.drop_front())};
  if (c == '@' && beginsWord(after))
    return {TokenKind::Symbol, 1 + text.drop_front().take_while(continuesWord).size()};
  if (c == '%' && continuesName(after))
    return {TokenKind::Value, 1 + text.drop_front().take_while(continuesName).size()};
  if (beginsWord(c))
    return {TokenKind::Word, text.take_while(continuesWord).size()};
  if (isDigit(c))
    return {TokenKind::Number, numberLength(text)};
  return {TokenKind::Mark, 1};
}

std::vector<Token> tokensOf(StringRef text) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < text.size();) {
    if (isSpace(text[at])) {
      ++at;
      continue;
    }
    const auto [kind, length] = tokenOf(text.substr(at));
    tokens.push_back({kind, at, at + length});
    at += length;
  }
  return tokens;
}

} // namespace hydra::lsp
