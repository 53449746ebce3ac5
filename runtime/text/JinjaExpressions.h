// Expressions of templates of Jinja, by recursive descent.
#pragma once

#include "runtime/text/JinjaLexer.h"
#include "runtime/text/JinjaSyntax.h"

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::text::jinja {

/// How deep tags and expressions may nest: no stack is spent on what nests without end.
inline constexpr unsigned kDeepest = 100;

class Deeper {
public:
  /// Throws Error where that is too deep.
  explicit Deeper(unsigned &depth);
  ~Deeper() { --depth; }
  Deeper(const Deeper &) = delete;
  Deeper &operator=(const Deeper &) = delete;

private:
  unsigned &depth;
};

/// The words of one tag.
class ExpressionParser {
public:
  /// What it reads becomes a part of `syntax`.
  explicit ExpressionParser(Syntax &syntax) : syntax(syntax) {}

  void begin(const std::vector<Token> &words);
  /// Throws Error where words are left, as the others do where what they read is not there.
  void finish() const;

  bool sees(std::string_view word) const;
  bool takes(std::string_view word);
  void want(std::string_view word);
  std::string name();

  const Expression *expression();

  /// The same where `if` is no part of it: conditions of blocks, and what a loop goes over.
  const Expression *withoutIf() { return tuple(either()); }
  /// With commas, a tuple.
  const Expression *assigned() { return tuple(expression()); }

private:
  const Token &now() const { return (*tokens)[at]; }

  const Expression *make(Expression expression);

  const Expression *tuple(const Expression *first);

  const Expression *either();
  const Expression *both();
  const Expression *opposite();

  /// The sign that stands here, of some.
  std::string sign(std::initializer_list<std::string_view> signs);
  std::string comparisonSign();
  const Expression *comparison();

  const Expression *sum();
  const Expression *joined();
  const Expression *product();
  const Expression *signedValue(bool filters);

  const Expression *filtered(const Expression *value);
  const Expression *test(const Expression *value);

  /// Behind `(`.
  std::vector<Argument> arguments();

  const Expression *behind(const Expression *value);
  const Expression *subscript(const Expression *value);

  const Expression *primary();
  const Expression *named(std::string word);
  const Expression *list();
  const Expression *dictionary();

  Syntax &syntax;
  std::map<const Expression *, unsigned> depths; // of expressions in each other
  const std::vector<Token> *tokens = nullptr;
  size_t at = 0;
  unsigned nesting = 0;
};

} // namespace hydra::text::jinja
