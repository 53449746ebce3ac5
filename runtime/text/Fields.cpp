// What is missing, of another type or unknown in a JSON file, in one line.
#include "runtime/text/Fields.h"
#include "runtime/support/JsonGuard.h"

#include "runtime/support/ZeroByte.h"
#include "runtime/text/Utf8.h"

#include <cmath>
#include <limits>

using namespace hydra::text;
using hydra::support::shown;

void Value::failType(const char *expected) const {
  fail("is {}; expected {}", json->is_null() ? "null" : json->type_name(), expected);
}

std::string_view Value::text() const {
  if (!json->is_string())
    failType("a string");
  return json->get_ref<const std::string &>();
}

bool Value::flag() const {
  if (!json->is_boolean())
    failType("true or false");
  return json->get<bool>();
}

double Value::number() const {
  if (!json->is_number())
    failType("a number");
  const double value = json->get<double>();
  if (!std::isfinite(value))
    fail("is {}; expected a finite number", value);
  return value;
}

int64_t Value::integer(int64_t limit) const {
  if (!json->is_number_integer())
    failType("an integer");
  if (json->is_number_unsigned() && json->get<uint64_t>() < static_cast<uint64_t>(limit))
    return json->get<int64_t>();
  fail("is {}; expected an integer in [0, {})", json->dump(), limit);
}

size_t Value::size() const {
  if (!json->is_array())
    failType("a list");
  return json->size();
}

Value Value::operator[](size_t index) const {
  return {(*json)[index], fmt::format("{}[{}]", place, index)};
}

const nlohmann::json &Value::object() const {
  if (!json->is_object())
    failType("an object");
  return *json;
}

std::optional<Value> Fields::find(const std::string &key) {
  asked.insert(key);
  const auto found = members->find(key);
  if (found == members->end() || found->is_null())
    return std::nullopt;
  return self.member(key, *found);
}

Value Fields::need(const std::string &key) {
  if (const std::optional<Value> found = find(key))
    return *found;
  self.fail("has no {}", key);
}

bool Fields::flag(const std::string &key, bool otherwise) {
  const std::optional<Value> found = find(key);
  return found ? found->flag() : otherwise;
}

std::string Fields::text(const std::string &key, std::string_view otherwise) {
  const std::optional<Value> found = find(key);
  return std::string(found ? found->text() : otherwise);
}

std::string Fields::character(const std::string &key) {
  const Value value = need(key);
  const std::string_view text = value.text();
  if (text.empty() || firstCharacter(text).bytes != text.size())
    value.fail("is '{}'; expected one character", shown(text));
  return std::string(text);
}

void Fields::finish() const {
  for (const auto &[key, value] : members->items())
    if (!asked.contains(key))
      self.member(shown(key), value).fail("is not known");
}

nlohmann::json hydra::text::parseJson(std::string_view text, const std::string &name) {
  if (const size_t bad = findInvalidUtf8(text); bad != std::string_view::npos)
    support::fail("{}: byte {} is no UTF-8", name, bad);
  if (const size_t zero = support::zeroByteIn(text); zero != std::string_view::npos)
    support::fail("{}: is no JSON: a mistake at byte {}", name, zero + 1);
  try {
    // Whoever reads a part says how deep it may nest.
    constexpr int anyNesting = std::numeric_limits<int>::max();
    return nlohmann::json::parse(text, support::JsonGuard(name, anyNesting));
  } catch (const nlohmann::json::parse_error &error) {
    if (error.byte > text.size())
      support::fail("{}: ends inside of its JSON, after {} bytes", name, text.size());
    support::fail("{}: is no JSON: a mistake at byte {}", name, error.byte);
  } catch (const nlohmann::json::exception &error) {
    support::fail("{}: is no JSON: {}", name, support::jsonProblem(error));
  }
}
