// What an editor shows for the word under the pointer.
#include "tools/hydra-lsp/Hover.h"

#include "tools/hydra-lsp/OperationDocs.h"
#include "tools/hydra-lsp/Semantics.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace hydra::lsp {

namespace {

/// The text of the statement that declares a name, without its body; of a symbol its line.
std::string declarationText(const Names &names, const Name &name) {
  constexpr size_t kMostLines = 4;
  const Text &text = names.source();
  StringRef shown = text.lineAt(names.allTokens()[name.token].begin);
  if (name.statement != kNone && name.kind < NameKind::Dim) {
    const Statement &statement = names.allStatements()[name.statement];
    shown = text.str().slice(names.allTokens()[statement.first].begin,
                             names.allTokens()[statement.last].end);
  }
  SmallVector<StringRef> lines;
  shown.split(lines, '\n');
  const bool whole = lines.size() <= kMostLines;
  if (!whole)
    lines.resize(name.isArgument || lines.front().trim().ends_with("{") ? 1 : kMostLines);
  std::string result = "```hydra\n";
  for (StringRef line : lines)
    result += line.trim().take_front(400).str() + "\n";
  return result + "```\n\n";
}

/// The comment lines that stand right above a statement.
std::string commentAbove(const Names &names, const Name &name) {
  if (name.statement == kNone || name.kind < NameKind::Parameter || name.kind > NameKind::Group)
    return "";
  const Text &text = names.source();
  std::string comment;
  size_t expected = names.allTokens()[names.allStatements()[name.statement].first].begin;
  for (unsigned i = names.tokenBefore(expected); i != kNone; --i) {
    const Token &token = names.allTokens()[i];
    const StringRef between = text.str().slice(token.end, expected);
    if (token.kind != TokenKind::Comment || between.count('\n') != 1)
      break;
    if (!text.lineAt(token.begin).ltrim().starts_with("//")) // it is about its own line
      break;
    comment = names.textOf(token).drop_front(2).trim().str() + "\n" + comment;
    expected = token.begin;
  }
  return comment.empty() ? "" : comment + "\n";
}

std::string ofName(const Names &names, const Name &name, Semantics *semantics) {
  std::string text = declarationText(names, name);
  text += name.kind == NameKind::Value && name.isArgument ? "argument\n\n"
          : name.kind == NameKind::Value                  ? ""
                                                          : nameKindText(name.kind).str() + "\n\n";
  text += commentAbove(names, name);
  if (!semantics)
    return text;
  switch (name.kind) {
  case NameKind::Value:
    text += semantics->ofValue(name);
    if (!name.isArgument && name.statement != kNone)
      text += semantics->costOf(name.statement);
    break;
  case NameKind::Parameter:
  case NameKind::State:
    text += semantics->ofVariable(name);
    break;
  case NameKind::Definition:
  case NameKind::Entry:
    text += semantics->costOf(name.statement);
    break;
  case NameKind::Model:
    text += semantics->ofModel();
    break;
  case NameKind::Stack:
  case NameKind::Preset:
  case NameKind::Group:
    break;
  case NameKind::Dim:
  case NameKind::Real:
  case NameKind::Flag:
  case NameKind::Choice:
  case NameKind::Derived:
    text += semantics->ofSymbol(name);
    break;
  }
  return text;
}

/// What a statement declares that is more than values, or null.
const Name *declaredBy(const Names &names, unsigned statement) {
  for (const Name &name : names.allNames())
    if (name.statement == statement && name.kind != NameKind::Value)
      return &name;
  return nullptr;
}

/// What the bound model says of the operation of a statement: also of what is in its body.
std::string ofStatement(const Names &names, unsigned number, Semantics &semantics) {
  const Statement &statement = names.allStatements()[number];
  const Name *name = declaredBy(names, number);
  if (name && name->kind == NameKind::Model)
    return semantics.ofModel();
  if (name && (name->kind == NameKind::Parameter || name->kind == NameKind::State))
    return semantics.ofVariable(*name);
  return semantics.resultsOf(statement.word, statement.operation) + semantics.costOf(number);
}

std::string ofOperation(const Names &names, unsigned token, StringRef operation,
                        Semantics *semantics) {
  const OperationDoc *doc = operationDoc(operation);
  if (!doc)
    return "";
  std::string text = "**hydra." + doc->name + "**";
  if (!doc->summary.empty())
    text += ": " + doc->summary;
  text += "\n\n";
  if (semantics) {
    const unsigned statement = names.allTokens()[token].statement;
    if (statement != kNone && names.allStatements()[statement].word == token)
      text += ofStatement(names, statement, *semantics);
    else
      text += semantics->resultsOf(token, operation) + semantics->costAt(token);
  }
  return text + (doc->description.empty() ? "" : "---\n\n" + doc->description + "\n");
}

/// The operator at a token, which stands in arithmetic, as the operation that it is.
StringRef operatorAt(const Names &names, unsigned token) {
  const Token &t = names.allTokens()[token];
  const StringRef operation = names.operationOf(t.statement);
  if (t.kind != TokenKind::Mark || (operation != "let" && operation != "def"))
    return "";
  const StringRef name = operatorName(names.textOf(t));
  const unsigned before = names.previous(token);
  const bool isUnary = before == kNone || names.isMark(before, '(') || names.isMark(before, ',') ||
                       names.isMark(before, '=') ||
                       names.textOf(names.allTokens()[before]) == "hydra.let";
  return name == "sub" && isUnary ? "neg" : name;
}

} // namespace

std::optional<HoverText> hoverAt(const Names &names, size_t offset, Semantics *semantics) {
  const unsigned token = names.tokenAt(offset);
  if (token == kNone)
    return std::nullopt;
  const Token &t = names.allTokens()[token];
  HoverText hover{"", names.source().rangeOf(t.begin, t.end)};
  StringRef operation = names.operationAt(token);
  if (operation.empty())
    operation = operatorAt(names, token);
  if (!operation.empty())
    hover.markdown = ofOperation(names, token, operation, semantics);
  const SmallVector<const Name *> meanings = names.meanings(token);
  if (hover.markdown.empty())
    for (const Name *name : ArrayRef(meanings).take_front(4))
      hover.markdown += ofName(names, *name, semantics);
  if (hover.markdown.empty() && names.operationOf(t.statement) == "group")
    hover.markdown = ofOperation(names, token, names.textOf(t), nullptr);
  if (hover.markdown.empty())
    return std::nullopt;
  return hover;
}

} // namespace hydra::lsp
