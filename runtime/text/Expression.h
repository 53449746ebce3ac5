// Regular expressions of tokenizer files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hydra::text {

/// What is found of an expression: bytes [begin, end) of a text.
struct Found {
  size_t begin = 0, end = 0;
};

/// A regular expression as Oniguruma, which tokenizers are written for, reads it: what that library
/// and the one used here understand in different ways is translated or refused. Any number of
/// threads at a time.
class Expression {
public:
  /// Throws Error, without the place of the expression, for what is no expression, or holds what is
  /// not supported.
  explicit Expression(std::string_view pattern);
  ~Expression();
  Expression(Expression &&) noexcept;
  Expression &operator=(Expression &&) = delete;

  /// The first match in a valid text that begins at `from` or behind it. Throws Error when the
  /// search takes too many steps.
  std::optional<Found> find(std::string_view text, size_t from) const;

private:
  struct Code;
  std::unique_ptr<Code> code;
};

/// The same expression in the syntax of PCRE2. Throws Error as above.
std::string translated(std::string_view pattern);

/// A text or an expression that is looked for.
class Pattern {
public:
  explicit Pattern(std::string literal) : literal(std::move(literal)) {}
  explicit Pattern(Expression expression) : expression(std::move(expression)) {}

  /// Calls `each(begin, end, matches)` for what matches and what lies between, in order and without
  /// gaps. A match may be empty, what lies between is not. An empty text has no match.
  template <typename Each> void divide(std::string_view text, const Each &each) const {
    if (text.empty())
      return;
    size_t done = 0;
    std::optional<size_t> last; // where the match before ends
    while (const std::optional<Found> found = find(text, done, last)) {
      if (found->begin > done)
        each(done, found->begin, false);
      each(found->begin, found->end, true);
      last = done = found->end;
    }
    if (done < text.size())
      each(done, text.size(), false);
  }

private:
  std::optional<Found> find(std::string_view text, size_t from, std::optional<size_t> last) const;

  std::string literal;
  std::optional<Expression> expression;
};

} // namespace hydra::text
