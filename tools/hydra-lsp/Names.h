// What a model's text declares and where: names, statements and scopes, read from tokens alone, so
// that half-written text has them too.
#pragma once

#include "tools/hydra-lsp/Text.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace hydra::lsp {

enum class TokenKind {
  Word,   ///< `hydra.let`, `linear`, `D`
  Value,  ///< `%x`, `%s.sum`
  Symbol, ///< `@wq`, `@"2.7B"`
  Number,
  String,
  Comment,
  Mark, ///< any other character
};

inline constexpr unsigned kNone = ~0U;

struct Token {
  TokenKind kind;
  size_t begin, end;          ///< bytes
  unsigned statement = kNone; ///< that it belongs to
  unsigned scope = 0;
};

enum class NameKind {
  Value,
  Model,
  Parameter,
  State,
  Stack,
  Definition,
  Entry,
  Preset,
  Group,
  Dim,
  Real,
  Flag,
  Choice,
  Derived,
};
/// `parameter`, `dimension`, … as people call it.
llvm::StringRef nameKindText(NameKind kind);

/// One declaration.
struct Name {
  NameKind kind;
  llvm::StringRef name; ///< without `%`, `@` and quotes
  unsigned token;
  unsigned scope;      ///< in which it is known
  unsigned statement;  ///< that declares it; kNone where its operation is not written yet
  unsigned number = 0; ///< of a value: which of the statement's results or arguments
  bool isArgument = false;
};

/// `%a, %b = hydra.name …`, up to the next statement.
struct Statement {
  llvm::StringRef operation; ///< without `hydra.`
  unsigned first, word;      ///< tokens: of the results or the operation, and of the operation
  unsigned last = 0;         ///< token; that of the closing brace where it has regions
  unsigned scope = 0;
};

/// What is between braces, or the arithmetic that is a short definition.
struct Scope {
  unsigned parent = kNone;
  unsigned statement = kNone; ///< to which it belongs
  size_t begin = 0, end = 0;
};

class Names {
public:
  /// `text` must outlive it. Linear in its length, for any text.
  explicit Names(const Text &text);

  llvm::ArrayRef<Token> allTokens() const { return tokens; }
  llvm::ArrayRef<Name> allNames() const { return names; }
  llvm::ArrayRef<Statement> allStatements() const { return statements; }
  const Scope &scope(unsigned number) const { return scopes[number]; }
  const Text &source() const { return text; }

  llvm::StringRef textOf(const Token &token) const {
    return text.str().slice(token.begin, token.end);
  }
  /// Of a value, a symbol or a word: without `%`, `@` and quotes.
  llvm::StringRef nameOf(const Token &token) const;
  llvm::StringRef operationOf(unsigned statement) const {
    return statement == kNone ? "" : statements[statement].operation;
  }

  /// The token that covers a byte, or ends in front of it; kNone: white space.
  unsigned tokenAt(size_t offset) const;
  /// The last token that begins in front of a byte; kNone: none.
  unsigned tokenBefore(size_t offset) const;
  /// The innermost scope around a byte.
  unsigned scopeAt(size_t offset) const;
  /// The next token before or after that is no comment; kNone: none.
  unsigned previous(unsigned token) const;
  unsigned next(unsigned token) const;
  bool isMark(unsigned token, char mark) const;

  /// The declarations that a token can mean, the nearest first; a declaration means itself.
  llvm::SmallVector<const Name *> meanings(unsigned token) const;
  /// The declarations that are known in a scope.
  llvm::SmallVector<const Name *> known(unsigned scope) const;
  /// Whether the token stands for the operation of a statement or a function of arithmetic; the
  /// operation's name, without `hydra.`, or empty.
  llvm::StringRef operationAt(unsigned token) const;
  /// The definition that is called by the parenthesis around a token, or null.
  const Name *calleeAround(unsigned token) const;
  /// Whether a word is the name of an attribute or of a call's parameter: `eps` in front of `=`.
  bool isKey(unsigned token) const;
  /// Whether it stands in the `settings {…}` of a preset, whose words are no names of the model, or
  /// is their opening brace.
  bool isInSettings(unsigned token) const;

private:
  friend class NamesBuilder;

  const Text &text;
  std::vector<Token> tokens;
  std::vector<Name> names;
  std::vector<Statement> statements;
  std::vector<Scope> scopes;

  /// The declarations of one spelling, with its `%` or `@`, in the order of the text.
  struct Declarations {
    llvm::SmallVector<unsigned, 2> all;
    llvm::DenseMap<unsigned, llvm::SmallVector<unsigned, 1>> inScope;
  };
  const Name *nearest(llvm::ArrayRef<unsigned> declarations, unsigned token) const;

  llvm::StringMap<Declarations> bySpelling;
  llvm::DenseMap<unsigned, unsigned> declaredBy; ///< the number of the name that a token declares
};

} // namespace hydra::lsp
