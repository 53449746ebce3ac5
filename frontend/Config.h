// A configuration in JSON, read field by field. Fields that nobody has asked for are an error in
// the end: one that is not understood may change what the model computes.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::frontend {

/// Every Error names the file and the field. A field that is null counts as missing.
class Config {
public:
  /// `where` stands for the object in messages: a file, or a field of one.
  Config(nlohmann::ordered_json object, std::string where);
  /// A file of at most 16 MiB that holds one object.
  static Config open(const std::filesystem::path &path);

  const std::string &where() const { return place; }
  /// All of it, also what was read.
  const nlohmann::ordered_json &json() const { return object; }
  bool has(std::string_view field) const;

  /// An integer from `least` to 2^31 - 1. Without `otherwise` it must be there.
  int64_t integer(std::string_view field, int64_t least = 1,
                  std::optional<int64_t> otherwise = std::nullopt);
  std::optional<int64_t> findInteger(std::string_view field, int64_t least = 1);
  /// A finite number above 0.
  double positive(std::string_view field, std::optional<double> otherwise = std::nullopt);
  std::optional<double> findPositive(std::string_view field);
  bool flag(std::string_view field, bool otherwise);
  std::string text(std::string_view field, std::optional<std::string> otherwise = std::nullopt);
  std::optional<std::string> findText(std::string_view field);
  std::optional<std::vector<std::string>> findTexts(std::string_view field);
  std::optional<std::vector<double>> findPositives(std::string_view field);
  /// The object of that name, which reads for itself: whoever takes it calls its finish().
  std::optional<Config> findObject(std::string_view field);

  /// Throws Error unless the field is missing or `expected`.
  void wantFlag(std::string_view field, bool expected);
  /// The same of a flag of other families, unless the family has read it.
  void wantOffUnlessRead(std::string_view field);
  /// Says of fields that they do not matter.
  void ignore(std::span<const std::string_view> fields);
  /// Throws Error that names the first field that nothing has read or ignored. `what` reads it:
  /// "a llama model".
  void finish(std::string_view what) const;

  /// Throws Error about a field: "<where>: <field> is <value>; expected <expected>".
  [[noreturn]] void reject(std::string_view field, const std::string &expected) const;

private:
  const nlohmann::ordered_json *find(std::string_view field);
  const nlohmann::ordered_json &get(std::string_view field, const std::string &expected);

  nlohmann::ordered_json object;
  std::string place;
  std::set<std::string, std::less<>> known; // fields that were asked for
};

} // namespace hydra::frontend
