// Tokens by name, and names by id.
#pragma once

#include "runtime/text/Fields.h"
#include "runtime/text/Hashing.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hydra::text {

/// Ids are below this.
inline constexpr int64_t kMostIds = int64_t{1} << 22;

/// The tokens of a model.
class Vocabulary {
public:
  Vocabulary() = default;
  Vocabulary(const Vocabulary &) = delete;
  Vocabulary &operator=(const Vocabulary &) = delete;

  /// Of two tokens of one name the later counts when it is looked for. Ids are below kMostIds.
  void add(std::string_view name, int32_t id);

  void reserve(size_t count) { ids.reserve(count); }

  /// -1: there is none.
  int32_t find(std::string_view name) const {
    const auto found = ids.find(name);
    return found == ids.end() ? -1 : found->second;
  }
  /// Nothing where no token has the id.
  const std::string *nameOf(int32_t id) const {
    const auto index = static_cast<size_t>(id);
    return index < names.size() && present[index] ? &names[index] : nullptr;
  }
  /// One above the largest id.
  size_t limit() const { return names.size(); }

private:
  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> ids;
  std::vector<std::string> names;
  std::vector<bool> present;
};

/// Reads `{"token": id, ...}` and throws Error for ids that are none, or that two tokens have.
void readVocabulary(const Value &value, Vocabulary &vocabulary);

/// The id of `<0x0A>` for each byte; -1 where the vocabulary has no such token.
std::vector<int32_t> byteTokens(const Vocabulary &vocabulary);

} // namespace hydra::text
