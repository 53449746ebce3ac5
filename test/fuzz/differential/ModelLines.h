// A model's text as lines that can be taken out and changed: enough of its syntax for the reducer,
// which asks of every change whether the model still is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hydra::test {

/// `%a, %b = hydra.scan axis = 1 over(%c = %x) carry(%s = %s0) {` and the like.
struct StatementLines {
  size_t begin = 0, end = 0;         ///< its line, and the one behind it or behind its last block
  std::string op;                    ///< without `hydra.`
  std::vector<std::string> results;  ///< names with `%`
  std::vector<std::string> operands; ///< all values that its first line reads
};

class ModelLines {
public:
  explicit ModelLines(const std::string &text);
  std::string text() const;

  std::vector<std::string> lines;

  /// The statement that begins in a line, with results or without.
  std::optional<StatementLines> statement(size_t line) const;
  /// All statements, those inside of others as well, in order.
  std::vector<StatementLines> statements() const;
  void erase(size_t begin, size_t end);

  /// Occurrences where a value is read.
  size_t uses(const std::string &value) const;
  void replaceUses(const std::string &value, const std::string &by);
  /// Takes out statements without use, parameters, state and arguments that nothing reads.
  void dropUnused();

  /// Puts `hydra.param @name …` in front of the first entry.
  void addParameter(const std::string &name, const std::string &shape, const std::string &dtype);
  /// A name that the text does not have.
  std::string freshName(const std::string &prefix) const;

  /// A number in the text that may be a size: not an axis, not a part of a name or of a real.
  struct Number {
    size_t line, column, length;
    int64_t value;
  };
  std::vector<Number> numbers() const;
  void replace(const Number &number, int64_t value);

private:
  size_t blockEnd(size_t line) const;
};

/// The values in a line: position, length, and whether the line defines it.
struct ValueToken {
  size_t at, length;
  bool defines;
};
std::vector<ValueToken> valuesIn(const std::string &line);

/// The parts of a list between the commas of its outermost level, trimmed.
std::vector<std::string> splitList(const std::string &list);
std::string joinList(const std::vector<std::string> &parts);

/// The text between the parentheses behind `word(`, by position and length.
std::optional<std::pair<size_t, size_t>> listBehind(const std::string &line,
                                                    const std::string &word);

} // namespace hydra::test
