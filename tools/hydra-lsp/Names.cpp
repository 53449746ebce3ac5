// What a model's text declares and where.
#include "tools/hydra-lsp/Names.h"

#include "tools/hydra-lsp/Tokens.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <optional>

using namespace llvm;

namespace hydra::lsp {

StringRef nameKindText(NameKind kind) {
  switch (kind) {
  case NameKind::Value:
    return "value";
  case NameKind::Model:
    return "model";
  case NameKind::Parameter:
    return "parameter";
  case NameKind::State:
    return "state";
  case NameKind::Stack:
    return "stack";
  case NameKind::Definition:
    return "definition";
  case NameKind::Entry:
    return "entry";
  case NameKind::Preset:
    return "preset";
  case NameKind::Group:
    return "group";
  case NameKind::Dim:
    return "dimension";
  case NameKind::Real:
    return "real";
  case NameKind::Flag:
    return "flag";
  case NameKind::Choice:
    return "choice";
  case NameKind::Derived:
    return "derived value";
  }
  return "";
}

//===-- Building ----------------------------------------------------------------------------===//

/// A name with the mark of its kind.
static std::string spelling(const Token &token, StringRef name) {
  const StringRef mark = token.kind == TokenKind::Value    ? "%"
                         : token.kind == TokenKind::Symbol ? "@"
                                                           : "";
  return (mark + name).str();
}

/// Walks over the tokens once. Braces make scopes; the word of an operation begins a statement, and
/// closes all parentheses that are still open: half a line does not spoil those below it.
class NamesBuilder {
public:
  explicit NamesBuilder(Names &out) : out(out), text(out.source().str()) {}

  void run() {
    out.tokens = tokensOf(text);
    out.scopes.push_back({kNone, kNone, 0, text.size()});
    for (unsigned i = 0; i < out.tokens.size(); ++i)
      if (out.tokens[i].kind != TokenKind::Comment)
        visit(i);
    closeShortBody(text.size());
    for (unsigned i = 0; i < out.names.size(); ++i) {
      const Name &name = out.names[i];
      Names::Declarations &list = out.bySpelling[spelling(token(name.token), name.name)];
      list.all.push_back(i);
      list.inScope[name.scope].push_back(i);
      out.declaredBy[name.token] = i;
    }
    for (Statement &each : out.statements)
      each.last = std::max(each.last, each.word);
  }

private:
  Token &token(unsigned i) { return out.tokens[i]; }
  StringRef textOf(unsigned i) { return out.textOf(out.tokens[i]); }
  bool isMark(unsigned i, char mark) { return out.isMark(i, mark); }

  void visit(unsigned i) {
    Token &t = token(i);
    if (t.kind == TokenKind::Word && textOf(i).starts_with("hydra."))
      beginStatement(i);
    t.scope = current;
    t.statement = statement;
    if (statement != kNone)
      out.statements[statement].last = i;
    inCombine &= t.kind == TokenKind::Value || isMark(i, ',');
    switch (t.kind) {
    case TokenKind::Mark:
      visitMark(i);
      break;
    case TokenKind::Word:
      visitWord(i);
      break;
    case TokenKind::Value:
      visitValue(i);
      break;
    case TokenKind::Symbol:
      declareSymbol(i);
      break;
    default:
      break;
    }
  }

  void beginStatement(unsigned word) {
    // In front may stand the names of its results.
    unsigned first = word;
    if (const unsigned equals = out.previous(word); isMark(equals, '='))
      first = firstResult(equals).value_or(word);
    if (const unsigned before = token(first).statement; first != word && before != kNone)
      out.statements[before].last = out.previous(first);
    closeShortBody(token(first).begin);
    statement = static_cast<unsigned>(out.statements.size());
    out.statements.push_back(
        {textOf(word).drop_front(StringRef("hydra.").size()), first, word, word, current});
    pending.clear();
    inHeader = true;
    named = false;
    depth = 0;
    list.reset();
    unsigned results = 0;
    for (unsigned i = first; i < word; ++i) { // they were taken for words of the statement before
      token(i).statement = statement;
      token(i).scope = current;
      if (token(i).kind == TokenKind::Value)
        declare(NameKind::Value, i, results++);
    }
  }

  /// The first of `%a, %b:2` in front of an equals sign.
  std::optional<unsigned> firstResult(unsigned equals) {
    std::optional<unsigned> first;
    unsigned i = out.previous(equals);
    while (i != kNone) {
      if (token(i).kind == TokenKind::Number && isMark(out.previous(i), ':'))
        i = out.previous(out.previous(i));
      if (i == kNone || token(i).kind != TokenKind::Value)
        break;
      first = i;
      i = out.previous(i);
      if (!isMark(i, ','))
        break;
      i = out.previous(i);
    }
    return first;
  }

  void visitMark(unsigned i) {
    switch (text[token(i).begin]) {
    case '{':
      openScope(token(i).end);
      break;
    case '}':
      closeScope(i);
      break;
    case '(':
      inCombine = out.previous(i) != kNone && textOf(out.previous(i)) == "combine";
      ++depth;
      break;
    case '[':
      ++depth;
      break;
    case ')':
    case ']':
      depth = std::max(depth - 1, 0);
      if (depth == 0)
        list.reset();
      break;
    case '=':
      // `hydra.def @f(%x) = …`
      if (depth == 0 && inHeader && out.operationOf(statement) == "def")
        openScope(token(i).end), inShortBody = true;
      break;
    default:
      break;
    }
  }

  void openScope(size_t begin) {
    closeShortBody(begin);
    const auto number = static_cast<unsigned>(out.scopes.size());
    out.scopes.push_back({current, statement, begin, text.size()});
    current = number;
    for (unsigned name : pending)
      out.names[name].scope = current;
    pending.clear();
    inHeader = false;
    depth = 0;
  }

  void closeScope(unsigned brace) {
    closeShortBody(token(brace).begin);
    if (current == 0)
      return;
    out.scopes[current].end = token(brace).begin;
    statement = out.scopes[current].statement;
    current = out.scopes[current].parent;
    token(brace).scope = current;
    token(brace).statement = statement;
    if (statement != kNone)
      out.statements[statement].last = brace;
    inHeader = false;
    depth = 0;
  }

  void closeShortBody(size_t end) {
    if (!inShortBody)
      return;
    inShortBody = false;
    out.scopes[current].end = end;
    current = out.scopes[current].parent;
  }

  void visitWord(unsigned i) {
    const StringRef operation = out.operationOf(statement), word = textOf(i);
    if (!inHeader)
      return;
    if (operation == "derive" && !named && isMark(out.next(i), '=')) {
      named = true;
      declare(NameKind::Derived, i);
      return;
    }
    if (operation != "symbols" && operation != "def" && operation != "entry")
      return;
    if (depth == 0 && isMark(out.next(i), '(')) {
      list = StringSwitch<std::optional<NameKind>>(word)
                 .Case("dims", NameKind::Dim)
                 .Case("reals", NameKind::Real)
                 .Case("flags", NameKind::Flag)
                 .Case("choices", NameKind::Choice)
                 .Default(std::nullopt);
    } else if (list && depth == 1 &&
               (isMark(out.previous(i), '(') || isMark(out.previous(i), ','))) {
      declareInside(*list, i);
    }
  }

  void visitValue(unsigned i) {
    const StringRef operation = out.operationOf(statement);
    const unsigned behind = out.next(i);
    if (inHeader && depth > 0) {
      const bool inSignature = operation == "def" && depth == 1 && !list;
      const bool hasType = operation == "entry" && depth == 1 && isMark(behind, ':');
      const bool isIteration =
          (operation == "for" || operation == "scan" || operation == "prefix_scan") &&
          (isMark(behind, '=') || inCombine);
      if (inSignature || hasType || isIteration)
        declareInside(NameKind::Value, i);
      return;
    }
    // `%y =` whose operation is not written yet.
    if (depth != 0 || !startsLine(i) || isMark(out.previous(i), ','))
      return;
    SmallVector<unsigned> found = {i};
    unsigned at = behind;
    while (isMark(at, ',') && out.next(at) != kNone &&
           token(out.next(at)).kind == TokenKind::Value) {
      found.push_back(out.next(at));
      at = out.next(found.back());
    }
    const unsigned operationWord = isMark(at, '=') ? out.next(at) : i;
    if (operationWord != kNone &&
        (operationWord == i || textOf(operationWord).starts_with("hydra.")))
      return;
    for (auto [number, value] : llvm::enumerate(found)) {
      declare(NameKind::Value, value, static_cast<unsigned>(number));
      out.names.back().statement = kNone;
    }
  }

  bool startsLine(unsigned i) {
    return i == 0 || text.slice(token(i - 1).end, token(i).begin).contains('\n');
  }

  void declareSymbol(unsigned i) {
    if (!inHeader || named || out.previous(i) != out.statements[statement].word)
      return;
    const auto kind = StringSwitch<std::optional<NameKind>>(out.operationOf(statement))
                          .Case("model", NameKind::Model)
                          .Case("param", NameKind::Parameter)
                          .Case("state", NameKind::State)
                          .Case("stack", NameKind::Stack)
                          .Case("def", NameKind::Definition)
                          .Case("entry", NameKind::Entry)
                          .Case("preset", NameKind::Preset)
                          .Case("group", NameKind::Group)
                          .Default(std::nullopt);
    named = true;
    if (kind)
      declare(*kind, i);
  }

  void declare(NameKind kind, unsigned i, unsigned number = 0) {
    out.names.push_back({kind, out.nameOf(token(i)), i, current, statement, number});
  }
  /// A name that is known in the scope which the statement is about to open.
  void declareInside(NameKind kind, unsigned i) {
    declare(kind, i, static_cast<unsigned>(pending.size()));
    if (out.operationOf(statement) == "symbols")
      return;
    out.names.back().isArgument = true;
    pending.push_back(static_cast<unsigned>(out.names.size()) - 1);
  }

  Names &out;
  StringRef text;
  unsigned current = 0, statement = kNone;
  int depth = 0;            ///< of parentheses in the statement
  bool inHeader = false;    ///< before what the statement has in braces
  bool named = false;       ///< whether the statement has its own name
  bool inShortBody = false; ///< whether `current` is arithmetic behind `=`
  bool inCombine = false;   ///< in the `combine(%a, %b)` of a scan
  std::optional<NameKind> list;
  SmallVector<unsigned> pending; ///< names for the scope that opens next
};

Names::Names(const Text &text) : text(text) { NamesBuilder(*this).run(); }

//===-- Asking ------------------------------------------------------------------------------===//

/// No list of settings or of what a call is given has so many words that anyone asks for its
/// beginning.
static constexpr unsigned kMostAround = 4096;

StringRef Names::nameOf(const Token &token) const {
  StringRef name = textOf(token);
  if (token.kind == TokenKind::Value || token.kind == TokenKind::Symbol)
    name = name.drop_front();
  if (token.kind == TokenKind::Symbol && name.consume_front("\""))
    name.consume_back("\"");
  return name;
}

unsigned Names::tokenBefore(size_t offset) const {
  auto behind = llvm::partition_point(tokens, [&](const Token &t) { return t.begin < offset; });
  return behind == tokens.begin() ? kNone : static_cast<unsigned>(behind - tokens.begin()) - 1;
}

unsigned Names::tokenAt(size_t offset) const {
  const unsigned here = tokenBefore(offset + 1);
  if (here == kNone || tokens[here].end < offset)
    return kNone;
  // Between two tokens, that which has a name.
  if (tokens[here].begin == offset && here > 0 && tokens[here - 1].end == offset &&
      tokens[here].kind == TokenKind::Mark && tokens[here - 1].kind != TokenKind::Mark)
    return here - 1;
  return here;
}

unsigned Names::scopeAt(size_t offset) const {
  auto behind = llvm::partition_point(scopes, [&](const Scope &s) { return s.begin <= offset; });
  auto scope = static_cast<unsigned>(behind - scopes.begin()) - 1;
  while (scopes[scope].end < offset && scopes[scope].parent != kNone)
    scope = scopes[scope].parent;
  return scope;
}

unsigned Names::previous(unsigned token) const {
  for (unsigned i = token; token != kNone && i > 0; --i)
    if (tokens[i - 1].kind != TokenKind::Comment)
      return i - 1;
  return kNone;
}

unsigned Names::next(unsigned token) const {
  if (token == kNone)
    return kNone;
  while (++token < tokens.size())
    if (tokens[token].kind != TokenKind::Comment)
      return token;
  return kNone;
}

bool Names::isMark(unsigned token, char mark) const {
  return token != kNone && tokens[token].kind == TokenKind::Mark &&
         text.str()[tokens[token].begin] == mark;
}

bool Names::isKey(unsigned token) const {
  const StringRef operation = operationOf(tokens[token].statement);
  if (tokens[token].kind != TokenKind::Word || operation == "preset" || operation == "symbols" ||
      operation == "derive")
    return false;
  const unsigned equals = next(token);
  const bool compares = isMark(equals, '=') && isMark(next(equals), '=') &&
                        tokens[next(equals)].begin == tokens[equals].end;
  return isMark(equals, '=') && !compares && !declaredBy.contains(token);
}

bool Names::isInSettings(unsigned token) const {
  const unsigned statement = tokens[token].statement;
  if (operationOf(statement) != "preset" || isMark(token, '}'))
    return false;
  unsigned brace = token;
  for (unsigned steps = 0; brace != kNone && tokens[brace].statement == statement &&
                           !isMark(brace, '{') && steps < kMostAround;
       ++steps)
    brace = previous(brace);
  const unsigned word = isMark(brace, '{') ? previous(brace) : kNone;
  return word != kNone && textOf(tokens[word]) == "settings";
}

const Name *Names::calleeAround(unsigned token) const {
  const unsigned statement = tokens[token].statement;
  int depth = 0;
  unsigned steps = 0;
  for (unsigned i = previous(token);
       i != kNone && tokens[i].statement == statement && steps < kMostAround;
       i = previous(i), ++steps) {
    depth += isMark(i, ')') ? 1 : isMark(i, '(') ? -1 : 0;
    if (depth >= 0)
      continue;
    const unsigned callee = previous(i);
    if (callee == kNone || tokens[callee].kind != TokenKind::Symbol)
      return nullptr;
    for (const Name *name : meanings(callee))
      if (name->kind == NameKind::Definition)
        return name;
    return nullptr;
  }
  return nullptr;
}

StringRef Names::operationAt(unsigned token) const {
  const Token &t = tokens[token];
  StringRef word = textOf(t);
  if (t.kind != TokenKind::Word)
    return "";
  if (word.consume_front("hydra."))
    return word;
  const StringRef operation = operationOf(t.statement);
  const bool arithmetic = operation == "let" || operation == "def";
  return arithmetic && isMark(next(token), '(') && word != "dims" && word != "reals" &&
                 word != "flags" && word != "choices"
             ? word
             : "";
}

/// Which declarations a token can refer to, by its kind and the words around it.
static bool canMean(const Names &names, unsigned token, const Name &name) {
  const Token &t = names.allTokens()[token];
  if (t.kind == TokenKind::Value)
    return name.kind == NameKind::Value;
  if (t.kind == TokenKind::Word)
    return name.kind >= NameKind::Dim;
  const unsigned before = names.previous(token);
  const StringRef word = before == kNone ? "" : names.textOf(names.allTokens()[before]);
  const unsigned keyword = names.isMark(before, '=') ? names.previous(before) : kNone;
  if (keyword != kNone && names.textOf(names.allTokens()[keyword]) == "group")
    return name.kind == NameKind::Group;
  if (word == "hydra.for")
    return name.kind == NameKind::Stack;
  if (names.isMark(names.next(token), '(') || word == "hydra.call")
    return name.kind == NameKind::Definition;
  return name.kind == NameKind::Parameter || name.kind == NameKind::State;
}

/// Of declarations in the order of the text that which the token can mean: the last one in front of
/// it, else the first one behind.
const Name *Names::nearest(ArrayRef<unsigned> declarations, unsigned token) const {
  constexpr ptrdiff_t kMost = 64; // of one spelling in one scope
  const auto *behind = llvm::partition_point(
      declarations, [&](unsigned number) { return names[number].token <= token; });
  for (const auto *at = behind; at != declarations.begin() && behind - at < kMost;)
    if (const Name &name = names[*--at]; canMean(*this, token, name))
      return &name;
  for (const auto *at = behind; at != declarations.end() && at - behind < kMost; ++at)
    if (canMean(*this, token, names[*at]))
      return &names[*at];
  return nullptr;
}

SmallVector<const Name *> Names::meanings(unsigned token) const {
  constexpr size_t kMostScopes = 1000, kMostMeanings = 16;
  const Token &t = tokens[token];
  if (t.kind != TokenKind::Value && t.kind != TokenKind::Symbol && t.kind != TokenKind::Word)
    return {};
  if (auto declared = declaredBy.find(token); declared != declaredBy.end())
    return {&names[declared->second]};
  if (isInSettings(token))
    return {};
  auto found = bySpelling.find(spelling(t, nameOf(t)));
  if (found == bySpelling.end() && t.kind == TokenKind::Value) // `%s.sum` is a field of `%s`
    found = bySpelling.find(spelling(t, nameOf(t).split('.').first));
  if (found == bySpelling.end())
    return {};
  const Declarations &declarations = found->second;
  if (isKey(token)) {
    const Name *callee = calleeAround(token);
    for (unsigned i : ArrayRef(declarations.all).take_front(kMostMeanings))
      if (callee && names[i].statement == callee->statement)
        return {&names[i]};
    return {};
  }
  unsigned scope = t.scope;
  for (size_t steps = 0; scope != kNone && steps < kMostScopes; ++steps) {
    if (auto here = declarations.inScope.find(scope); here != declarations.inScope.end())
      if (const Name *name = nearest(here->second, token))
        return {name};
    scope = scopes[scope].parent;
  }
  // Not known here: half-written text, or a parameter, which may be that of several stacks.
  if (t.kind != TokenKind::Symbol) {
    const Name *name = nearest(declarations.all, token);
    return name ? SmallVector<const Name *>{name} : SmallVector<const Name *>();
  }
  SmallVector<const Name *> list;
  for (unsigned i : declarations.all)
    if (list.size() < kMostMeanings && canMean(*this, token, names[i]))
      list.push_back(&names[i]);
  return list;
}

SmallVector<const Name *> Names::known(unsigned scope) const {
  DenseSet<unsigned> around;
  for (unsigned s = scope; s != kNone; s = scopes[s].parent)
    around.insert(s);
  SmallVector<const Name *> list;
  for (const Name &name : names) {
    if (around.contains(name.scope) ||
        (name.kind >= NameKind::Model && name.kind <= NameKind::Group))
      list.push_back(&name);
  }
  return list;
}

} // namespace hydra::lsp
