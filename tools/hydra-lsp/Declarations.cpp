// The declarations of a model's text.
#include "tools/hydra-lsp/Declarations.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>

using namespace llvm;

namespace hydra::lsp {

Declarations::Declarations(const Names &names) : names(names) {
  unsigned model = kNone;
  for (auto [number, statement] : llvm::enumerate(names.allStatements()))
    if (statement.operation == "model") {
      if (model != kNone)
        return;
      model = static_cast<unsigned>(number);
    }
  if (model == kNone)
    return;
  // Statements are in the order of the text, so what is in a stack follows it.
  std::vector<unsigned> starts, parents;
  auto parentOf = [&](unsigned statement) {
    return names.scope(names.allStatements()[statement].scope).statement;
  };
  std::vector<unsigned> numberOf(names.allStatements().size(), kNone);
  for (unsigned i = 0; i < names.allStatements().size(); ++i) {
    const unsigned parent = parentOf(i);
    const bool isInStack = parent != kNone && names.operationOf(parent) == "stack";
    if (parent != model && !(isInStack && numberOf[parent] != kNone))
      continue;
    numberOf[i] = static_cast<unsigned>(list.size());
    const Statement &statement = names.allStatements()[i];
    Declaration declaration;
    declaration.begin = names.allTokens()[statement.first].begin;
    declaration.end = names.scope(statement.scope).end;
    declaration.statement = i;
    declaration.stack = isInStack ? numberOf[parent] : kNone;
    list.push_back(declaration);
  }
  // Each ends where the next one of the same scope begins. What is not closed reaches no further
  // than what it is in.
  unsigned last = kNone, lastInside = kNone;
  for (unsigned i = 0; i < list.size(); ++i) {
    unsigned &before = list[i].stack == kNone ? last : lastInside;
    if (before != kNone && list[before].stack == list[i].stack)
      list[before].end = std::min(list[before].end, list[i].begin);
    before = i;
  }
  for (Declaration &declaration : list)
    if (declaration.stack != kNone)
      declaration.end = std::min(declaration.end, list[declaration.stack].end);
}

unsigned Declarations::at(size_t offset) const {
  auto behind =
      llvm::partition_point(list, [&](const Declaration &d) { return d.begin <= offset; });
  if (behind == list.begin())
    return kNone;
  auto number = static_cast<unsigned>(behind - list.begin()) - 1;
  // Behind the last of a stack, that is in the stack itself.
  if (list[number].stack != kNone && offset >= list[number].end)
    number = list[number].stack;
  return number;
}

/// Writes white space over a part of a text; lines stay lines.
static void blank(std::string &text, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i)
    if (text[i] != '\n' && text[i] != '\r')
      text[i] = ' ';
}

std::string Declarations::without(const BitVector &left) const {
  std::string text = names.source().str().str();
  for (unsigned i : left.set_bits())
    blank(text, list[i].begin, list[i].end);
  return text;
}

std::string Declarations::behind(unsigned number) const {
  BitVector left(size());
  left.set(0, number + 1);
  if (list[number].stack != kNone) // it goes on
    left.reset(list[number].stack);
  return without(left);
}

std::string Declarations::only(unsigned number, const BitVector &wrong) const {
  BitVector left(size(), true);
  left.reset(number);
  if (list[number].stack != kNone)
    left.reset(list[number].stack);
  for (unsigned i = number + 1; i < size() && list[i].stack == number; ++i)
    if (!wrong.test(i))
      left.reset(i);
  return without(left);
}

/// Whether what is declared is a word, such as a derived value, and not a symbol behind the
/// operation, which may be misspelt.
bool Declarations::declaresWords(unsigned number) const {
  const unsigned behind = names.next(names.allStatements()[list[number].statement].word);
  return behind != kNone && names.allTokens()[behind].kind == TokenKind::Word;
}

void Declarations::readMentions() {
  mentions.emplace();
  mentions->users.resize(size());
  mentions->strange.resize(size());
  for (auto [i, token] : llvm::enumerate(names.allTokens())) {
    const unsigned user =
        token.kind == TokenKind::Symbol || token.kind == TokenKind::Word ? at(token.begin) : kNone;
    if (user == kNone || token.begin >= list[user].end)
      continue;
    const SmallVector<const Name *> meanings = names.meanings(static_cast<unsigned>(i));
    for (const Name *name : meanings)
      if (const unsigned used = at(names.allTokens()[name->token].begin);
          used != kNone && used != user)
        mentions->users[used].push_back(user);
    if (!meanings.empty())
      continue;
    const StringRef text = names.textOf(token);
    mentions->strangers[text].push_back(user);
    if (token.kind == TokenKind::Symbol ||
        (token.statement == list[user].statement && declaresWords(user)))
      mentions->strange[user].push_back(text);
  }
}

BitVector Declarations::dependents(const BitVector &wrong) {
  if (!mentions)
    readMentions();
  BitVector left = wrong;
  SmallVector<unsigned> open(wrong.set_bits());
  auto add = [&](unsigned number) {
    if (!left.test(number)) {
      left.set(number);
      open.push_back(number);
    }
  };
  while (!open.empty()) {
    const unsigned number = open.pop_back_val();
    llvm::for_each(mentions->users[number], add);
    for (unsigned i = number + 1; i < size() && list[i].stack == number; ++i)
      add(i);
    if (wrong.test(number))
      for (StringRef name : mentions->strange[number])
        llvm::for_each(mentions->strangers[name], add);
  }
  return left;
}

} // namespace hydra::lsp
