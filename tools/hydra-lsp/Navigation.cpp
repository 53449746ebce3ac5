// From a name to where it is declared and used, and the outline of a document.
#include "tools/hydra-lsp/Navigation.h"

using namespace llvm;
using llvm::lsp::DocumentSymbol;
using llvm::lsp::SymbolKind;

namespace hydra::lsp {

static Range rangeOf(const Names &names, unsigned token) {
  const Token &t = names.allTokens()[token];
  return names.source().rangeOf(t.begin, t.end);
}

std::vector<Range> declarationsAt(const Names &names, size_t offset) {
  std::vector<Range> ranges;
  if (const unsigned token = names.tokenAt(offset); token != kNone)
    for (const Name *name : names.meanings(token))
      ranges.push_back(rangeOf(names, name->token));
  return ranges;
}

std::vector<Range> referencesAt(const Names &names, size_t offset, bool withDeclaration) {
  std::vector<Range> ranges;
  const unsigned token = names.tokenAt(offset);
  if (token == kNone)
    return ranges;
  const SmallVector<const Name *> wanted = names.meanings(token);
  if (wanted.empty())
    return ranges;
  const StringRef spelled = wanted.front()->name;
  for (unsigned i = 0; i < names.allTokens().size(); ++i) {
    const Token &t = names.allTokens()[i];
    if (names.nameOf(t) != spelled &&
        !(t.kind == TokenKind::Value && names.nameOf(t).split('.').first == spelled))
      continue;
    const SmallVector<const Name *> meant = names.meanings(i);
    if (meant.empty() || !llvm::is_contained(wanted, meant.front()))
      continue;
    if (withDeclaration || meant.front()->token != i)
      ranges.push_back(rangeOf(names, i));
  }
  return ranges;
}

static SymbolKind symbolKind(NameKind kind) {
  switch (kind) {
  case NameKind::Model:
    return SymbolKind::Module;
  case NameKind::Parameter:
    return SymbolKind::Field;
  case NameKind::State:
    return SymbolKind::Property;
  case NameKind::Stack:
    return SymbolKind::Array;
  case NameKind::Definition:
    return SymbolKind::Function;
  case NameKind::Entry:
    return SymbolKind::Interface;
  case NameKind::Preset:
    return SymbolKind::Object;
  case NameKind::Group:
    return SymbolKind::Class;
  case NameKind::Dim:
  case NameKind::Real:
  case NameKind::Derived:
    return SymbolKind::Number;
  case NameKind::Flag:
    return SymbolKind::Boolean;
  case NameKind::Choice:
    return SymbolKind::Enum;
  case NameKind::Value:
    return SymbolKind::Variable;
  }
  return SymbolKind::Variable;
}

std::vector<DocumentSymbol> outlineOf(const Names &names) {
  std::vector<DocumentSymbol> top;
  std::vector<std::pair<DocumentSymbol, size_t>> open; // with the byte where it ends
  auto closeUntil = [&](size_t offset) {
    while (!open.empty() && open.back().second <= offset) {
      DocumentSymbol done = std::move(open.back().first);
      open.pop_back();
      auto &list = open.empty() ? top : open.back().first.children;
      list.push_back(std::move(done));
    }
  };
  for (const Name &name : names.allNames()) {
    if (name.kind == NameKind::Value || name.isArgument || name.name.empty())
      continue;
    const Token &token = names.allTokens()[name.token];
    size_t begin = token.begin, end = token.end;
    if (name.statement != kNone && name.kind < NameKind::Dim) {
      const Statement &statement = names.allStatements()[name.statement];
      begin = names.allTokens()[statement.first].begin;
      end = std::max(names.allTokens()[statement.last].end, token.end);
    }
    closeUntil(begin);
    DocumentSymbol symbol(name.name, symbolKind(name.kind), names.source().rangeOf(begin, end),
                          rangeOf(names, name.token));
    symbol.detail = nameKindText(name.kind).str();
    open.emplace_back(std::move(symbol), end);
  }
  closeUntil(SIZE_MAX);
  return top;
}

} // namespace hydra::lsp
