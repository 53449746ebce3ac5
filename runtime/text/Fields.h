// Objects of a JSON file, read so that every mistake names its field.
#pragma once

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::text {

/// A value of the file, and what messages call it: `FILE: model.merges[3]`.
class Value {
public:
  Value(const nlohmann::json &json, std::string place) : json(&json), place(std::move(place)) {}

  bool isList() const { return json->is_array(); }
  bool isObject() const { return json->is_object(); }

  // Each throws Error where the value has another type.
  std::string_view text() const;
  bool flag() const;
  double number() const;
  /// An integer in [0, limit).
  int64_t integer(int64_t limit) const;
  size_t size() const; // of a list
  Value operator[](size_t index) const;
  const nlohmann::json &object() const;

  /// For lists and objects with so many members that one looks at them without their places first.
  const nlohmann::json &raw() const { return *json; }

  /// The member of an object.
  Value member(const std::string &key, const nlohmann::json &value) const {
    return {value, place.ends_with(": ") ? place + key : place + "." + key};
  }

  /// Throws Error: the place, a message in fmt syntax.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args &&...args) const {
    throw support::Error(place + (place.ends_with(' ') ? "" : " ") +
                         fmt::format(format, std::forward<Args>(args)...));
  }

private:
  [[noreturn]] void failType(const char *expected) const;

  const nlohmann::json *json;
  std::string place;
};

/// The members of an object, which are asked for one by one.
class Fields {
public:
  /// Throws Error unless the value is an object.
  explicit Fields(Value value) : self(std::move(value)), members(&self.object()) {}

  const Value &value() const { return self; }
  /// Nothing where it is not there, or null.
  std::optional<Value> find(const std::string &key);
  Value need(const std::string &key); // Throws Error where it is not there

  // With what holds where it is not there.
  bool flag(const std::string &key, bool otherwise);
  bool flag(const std::string &key) { return need(key).flag(); }
  std::string text(const std::string &key) { return std::string(need(key).text()); }
  std::string text(const std::string &key, std::string_view otherwise);
  /// The one character of a text.
  std::string character(const std::string &key);

  /// Throws Error for a member that nobody has asked for: what is not understood is not ignored.
  void finish() const;

private:
  Value self;
  const nlohmann::json *members;
  std::set<std::string> asked;
};

/// Parses a file of JSON; `name` is what messages call it. Throws Error with the byte where it is
/// wrong, and for a name that an object has twice.
nlohmann::json parseJson(std::string_view text, const std::string &name);

} // namespace hydra::text
