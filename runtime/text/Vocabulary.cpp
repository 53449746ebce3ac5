// Reading vocabularies.
#include "runtime/text/Vocabulary.h"

using namespace hydra::text;
namespace support = hydra::support;

void Vocabulary::add(std::string_view name, int32_t id) {
  const auto index = static_cast<size_t>(id);
  if (index >= names.size()) {
    names.resize(index + 1);
    present.resize(index + 1);
  }
  names[index] = name;
  present[index] = true;
  ids.insert_or_assign(std::string(name), id);
}

void hydra::text::readVocabulary(const Value &value, Vocabulary &vocabulary) {
  vocabulary.reserve(value.object().size());
  for (const auto &[name, json] : value.object().items()) {
    const auto entry = [&] { return value.member(support::shown(name), json); };
    const bool fits = json.is_number_unsigned() && json.get<uint64_t>() < uint64_t{kMostIds};
    const auto id = static_cast<int32_t>(fits ? json.get<int64_t>() : entry().integer(kMostIds));
    if (const std::string *other = vocabulary.nameOf(id))
      entry().fail("has the id {}, which '{}' has too", id, support::shown(*other));
    vocabulary.add(name, id);
  }
}

std::vector<int32_t> hydra::text::byteTokens(const Vocabulary &vocabulary) {
  constexpr int bytes = 256;
  std::vector<int32_t> ids;
  for (int byte = 0; byte < bytes; ++byte)
    ids.push_back(vocabulary.find(fmt::format("<0x{:02X}>", byte)));
  return ids;
}
