// Naming the field at which a check of a plan fails.
#pragma once

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <flatbuffers/flatbuffers.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

namespace hydra::runtime {

/// A field of the plan, as a chain of objects on the stack: costs nothing until it is printed.
class Path {
public:
  /// The plan itself, printed as the name of its file.
  explicit Path(std::string_view origin) : name(origin) {}
  /// A field of `parent`, or entry `index` of it.
  Path(const Path &parent, std::string_view field, int64_t index = -1)
      : parent(&parent), name(field), index(index) {}

  /// Such as `plan.fb: programs[0].blocks[12].step.args[2]`.
  std::string text() const {
    if (!parent)
      return std::string(name);
    std::string result = parent->text() + (parent->parent ? "." : ": ") + std::string(name);
    if (index >= 0)
      result += fmt::format("[{}]", index);
    return result;
  }

private:
  const Path *parent = nullptr;
  std::string_view name;
  int64_t index = -1;
};

/// An argument of a message: names, which are as long as the file says, are cut.
template <typename T> decltype(auto) shownArgument(const T &value) {
  if constexpr (std::is_convertible_v<const T &, std::string_view>)
    return support::shown(std::string_view(value));
  else
    return value;
}

/// Throws Error: the path, then a message in fmt syntax.
template <typename... Args>
[[noreturn]] void failAt(const Path &path, fmt::format_string<Args...> format, Args &&...args) {
  throw support::Error(path.text() + ": " +
                       fmt::format(fmt::runtime(format), shownArgument(args)...));
}

/// Whether a number from a file is a value of a generated enum.
template <typename Enum> void checkEnum(const Path &owner, const char *field, Enum value) {
  if (value > Enum::MAX)
    failAt(Path(owner, field), "{} is no value of this enum; the largest is {}",
           static_cast<int>(value), static_cast<int>(Enum::MAX));
}

/// Whether the field is one of the tables of a generated union. (The FlatBuffers verifier lets
/// unknown ones pass.)
template <typename Union> void checkUnion(const Path &owner, const char *field, Union type) {
  if (type == Union::NONE || type > Union::MAX)
    failAt(Path(owner, field), "is of no known type ({})", static_cast<int>(type));
}

/// Whether elements may be referred to where they stand. (The FlatBuffers verifier checks the
/// alignment of a vector's length only.)
template <typename Element>
void checkAligned(const Path &path, const flatbuffers::Vector<Element> &vector) {
  constexpr size_t alignment = alignof(std::remove_pointer_t<Element>);
  if (vector.size() > 0 && reinterpret_cast<uintptr_t>(vector.Data()) % alignment != 0)
    failAt(path, "does not begin at a multiple of {} bytes", alignment);
}

/// Whether `index` names an entry of `list`, whose entries are called `what`.
template <typename List>
void checkIndex(const Path &path, const char *what, uint64_t index, const List &list) {
  if (index >= list.size())
    failAt(path, "{} index {} is out of range (plan has {} {}s)", what, index, list.size(), what);
}

/// The same where -1 stands for none.
template <typename List>
void checkOptionalIndex(const Path &path, const char *what, int64_t index, const List &list) {
  if (index < -1 || index >= static_cast<int64_t>(list.size()))
    failAt(path, "{} index {} is out of range (plan has {} {}s)", what, index, list.size(), what);
}

inline void checkFinite(const Path &owner, const char *field, double value) {
  if (!std::isfinite(value))
    failAt(Path(owner, field), "{} is not finite", value);
}

inline void checkNotNegative(const Path &owner, const char *field, double value) {
  checkFinite(owner, field, value);
  if (value < 0)
    failAt(Path(owner, field), "{} is negative", value);
}

/// Whether a number counts steps: sums of two do not overflow and doubles count exactly.
inline void checkStepCount(const Path &owner, const char *field, int64_t value) {
  constexpr int64_t largest = int64_t{1} << 52;
  if (value < 0 || value > largest)
    failAt(Path(owner, field), "{} is no number of steps; expected 0 to {}", value, largest);
}

/// Names given so far, each of which must be there and be new.
class Names {
public:
  void add(const Path &owner, const char *field, const flatbuffers::String &name) {
    if (name.size() == 0)
      failAt(Path(owner, field), "is empty");
    if (!seen.insert(name.string_view()).second)
      failAt(Path(owner, field), "{} is given twice", name.string_view());
  }
  bool contains(std::string_view name) const { return seen.count(name) != 0; }

private:
  std::unordered_set<std::string_view> seen;
};

} // namespace hydra::runtime
