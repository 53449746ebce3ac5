// Types and ranges of fields, and which of them were read.
#include "frontend/Config.h"

#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/JsonGuard.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <cmath>
#include <limits>

using nlohmann::ordered_json;

namespace hydra::frontend {

using support::fail;
using support::shown;

static constexpr uint64_t kMostBytes = uint64_t{16} << 20;

Config::Config(ordered_json object, std::string where)
    : object(std::move(object)), place(std::move(where)) {
  if (!this->object.is_object())
    fail("{}: holds {}; expected an object", place, this->object.type_name());
}

/// Parses a text. Deep nesting, which nothing here needs, would exhaust the stack later; of equal
/// names in an object programs take different ones.
static ordered_json parse(std::string_view text, const std::string &place) {
  if (const size_t zero = support::zeroByteIn(text); zero != std::string_view::npos)
    fail("{}: has a zero byte at {}; expected JSON text", place, zero);
  try {
    return ordered_json::parse(text.begin(), text.end(), support::JsonGuard(place));
  } catch (const ordered_json::exception &error) {
    fail("{}: is not valid JSON: {}", place, support::jsonProblem(error));
  }
}

Config Config::open(const std::filesystem::path &path) {
  const support::InputFile file(path);
  if (file.size() > kMostBytes)
    fail("{}: {} bytes; expected at most {} of a configuration", file.name(), file.size(),
         kMostBytes);
  const std::vector<std::byte> bytes = file.readAll();
  return {parse({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, file.name()),
          file.name()};
}

bool Config::has(std::string_view field) const {
  const auto found = object.find(field);
  return found != object.end() && !found->is_null();
}

const ordered_json *Config::find(std::string_view field) {
  known.emplace(field);
  const auto found = object.find(field);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const ordered_json &Config::get(std::string_view field, const std::string &expected) {
  if (const ordered_json *value = find(field))
    return *value;
  fail("{}: has no {}; expected {}", place, field, expected);
}

void Config::reject(std::string_view field, const std::string &expected) const {
  const auto found = object.find(field);
  const std::string value =
      found == object.end()
          ? "missing"
          : shown(found->dump(-1, ' ', false, ordered_json::error_handler_t::replace), 60);
  fail("{}: {} is {}; expected {}", place, field, value, expected);
}

std::optional<int64_t> Config::findInteger(std::string_view field, int64_t least) {
  const ordered_json *value = find(field);
  if (!value)
    return std::nullopt;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool whole = value->is_number_integer() &&
                     !(value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{kMost});
  if (!whole || value->get<int64_t>() < least)
    reject(field, fmt::format("an integer from {} to 2^31-1", least));
  return value->get<int64_t>();
}

int64_t Config::integer(std::string_view field, int64_t least, std::optional<int64_t> otherwise) {
  if (const std::optional<int64_t> value = findInteger(field, least))
    return *value;
  if (!otherwise)
    get(field, fmt::format("an integer from {}", least));
  return *otherwise;
}

std::optional<double> Config::findPositive(std::string_view field) {
  const ordered_json *value = find(field);
  if (!value)
    return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>()) || !(value->get<double>() > 0))
    reject(field, "a number above 0");
  return value->get<double>();
}

double Config::positive(std::string_view field, std::optional<double> otherwise) {
  if (const std::optional<double> value = findPositive(field))
    return *value;
  if (!otherwise)
    get(field, "a number above 0");
  return *otherwise;
}

bool Config::flag(std::string_view field, bool otherwise) {
  const ordered_json *value = find(field);
  if (value && !value->is_boolean())
    reject(field, "true or false");
  return value ? value->get<bool>() : otherwise;
}

std::optional<std::string> Config::findText(std::string_view field) {
  const ordered_json *value = find(field);
  if (!value)
    return std::nullopt;
  if (!value->is_string())
    reject(field, "a string");
  return value->get<std::string>();
}

std::string Config::text(std::string_view field, std::optional<std::string> otherwise) {
  if (std::optional<std::string> value = findText(field))
    return *value;
  if (!otherwise)
    get(field, "a string");
  return *otherwise;
}

std::optional<std::vector<std::string>> Config::findTexts(std::string_view field) {
  const ordered_json *value = find(field);
  if (!value)
    return std::nullopt;
  if (!value->is_array())
    reject(field, "a list of strings");
  std::vector<std::string> texts;
  for (const ordered_json &element : *value) {
    if (!element.is_string())
      reject(field, "a list of strings");
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::optional<std::vector<double>> Config::findPositives(std::string_view field) {
  const ordered_json *value = find(field);
  if (!value)
    return std::nullopt;
  if (!value->is_array())
    reject(field, "a list of numbers above 0");
  std::vector<double> numbers;
  for (const ordered_json &element : *value) {
    if (!element.is_number() || !std::isfinite(element.get<double>()) ||
        !(element.get<double>() > 0))
      reject(field, "a list of numbers above 0");
    numbers.push_back(element.get<double>());
  }
  return numbers;
}

std::optional<Config> Config::findObject(std::string_view field) {
  const ordered_json *value = find(field);
  if (!value)
    return std::nullopt;
  if (!value->is_object())
    reject(field, "an object");
  return Config(*value, fmt::format("{}: {}", place, field));
}

void Config::wantFlag(std::string_view field, bool expected) {
  if (flag(field, expected) != expected)
    reject(field, expected ? "true; anything else is not supported"
                           : "false; anything else is not supported");
}

void Config::wantOffUnlessRead(std::string_view field) {
  if (!known.contains(field))
    wantFlag(field, false);
}

void Config::ignore(std::span<const std::string_view> fields) {
  for (const std::string_view field : fields)
    known.emplace(field);
}

void Config::finish(std::string_view what) const {
  for (const auto &[field, value] : object.items())
    if (!known.contains(field) && !value.is_null() && !(value.is_structured() && value.empty()))
      fail("{}: the field '{}' of {} is not supported; it may change what the model computes",
           place, shown(field), what);
}

} // namespace hydra::frontend
