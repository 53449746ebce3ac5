// Values of expressions in templates of Jinja.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hydra::text::jinja {

struct List;
struct Dictionary;
struct Statement;

/// What has a name that nothing was given.
struct Undefined {};
struct None {};
/// A function of the template's surroundings, or a macro of its own.
struct Function {
  std::string_view name;
  const Statement *macro = nullptr;
};

/// Lists and dictionaries belong to the rendering.
using Value =
    std::variant<Undefined, None, bool, int64_t, std::string, List *, Dictionary *, Function>;

struct List {
  std::vector<Value> items;
  unsigned depth = 0; // of lists and dictionaries in it
};

struct Dictionary {
  std::vector<std::pair<std::string, Value>> members;
  unsigned depth = 0;
  bool isNamespace = false; // which can be changed, and is equal to nothing but itself

  const Value *find(std::string_view key) const;
};

template <typename T> bool is(const Value &value) { return std::holds_alternative<T>(value); }

/// As Python has it: nothing, 0 and what is empty are false.
bool isTrue(const Value &value);

/// What a rendering makes, and how much of it it may make: templates come from files.
class Store {
public:
  /// Counts work that is to be done. Throws Error beyond what any template needs.
  void spend(uint64_t work);

  List *list(std::vector<Value> items);
  Dictionary *dictionary(std::vector<std::pair<std::string, Value>> members = {});

private:
  std::deque<List> lists;
  std::deque<Dictionary> dictionaries;
  uint64_t spent = 0;
};

/// Values as arguments: those by place, then those with names.
struct Arguments {
  std::vector<Value> places;
  std::vector<std::pair<std::string, Value>> names;

  /// The argument at a place or of a name, or `otherwise`.
  Value get(size_t place, std::string_view name, const Value &otherwise) const;
  /// Throws Error where there are more than so many, or fewer.
  void expect(size_t least, size_t most) const;
};

/// What is printed of a value. Throws Error for all but texts and integers, and for undefined ones.
std::string textOf(const Value &value);
/// Throws Error where it is none.
const std::string &asText(const Value &value);
int64_t asInteger(const Value &value);

/// The items of a list, the characters of a text, the keys of a dictionary. Throws Error for
/// others.
std::vector<Value> itemsOf(const Value &value, Store &store);
/// `value[begin:end:step]`.
Value sliceOf(const Value &value, const Value &begin, const Value &end, const Value &step,
              Store &store);

/// `value | name(arguments)`, `value is name(arguments)` and `value.name(arguments)`. Throw Error
/// for those that are not known.
Value filtered(std::string_view name, const Value &value, const Arguments &arguments, Store &store);
bool passes(std::string_view name, const Value &value, const Arguments &arguments, Store &store);
Value called(std::string_view method, const Value &value, const Arguments &arguments, Store &store);

/// `a op b` of numbers, texts and lists, and comparisons. Throw Error for what Python does not add
/// or compare.
Value arithmetic(std::string_view op, const Value &a, const Value &b, Store &store);
bool compares(std::string_view op, const Value &a, const Value &b, Store &store);

} // namespace hydra::text::jinja
