// Models without merges and probabilities: the longest tokens from the left, and whole words.
#include "runtime/text/Model.h"
#include "runtime/text/Utf8.h"

using namespace hydra::text;
namespace support = hydra::support;

namespace {

int32_t findUnknown(Fields &fields, const Vocabulary &tokens) {
  const Value name = fields.need("unk_token");
  const int32_t id = tokens.find(name.text());
  if (id < 0)
    name.fail("is '{}', which is not in the vocabulary", support::shown(name.text()));
  return id;
}

class WordPiece : public Model {
public:
  explicit WordPiece(Fields &fields) : prefix(fields.text("continuing_subword_prefix")) {
    readVocabulary(fields.need("vocab"), tokens);
    unknown = findUnknown(fields, tokens);
    constexpr int64_t limit = int64_t{1} << 31;
    mostCharacters = fields.need("max_input_chars_per_word").integer(limit);
  }

  void encode(std::string_view word, WordCache &, std::vector<int32_t> &ids) const override {
    const size_t before = ids.size();
    if (!spell(word, ids)) {
      ids.resize(before);
      ids.push_back(unknown);
    }
  }

private:
  bool spell(std::string_view word, std::vector<int32_t> &ids) const {
    std::vector<size_t> ends = {0}; // of characters
    while (ends.back() < word.size()) {
      if (static_cast<int64_t>(ends.size()) > mostCharacters)
        return false;
      ends.push_back(ends.back() + firstCharacter(word.substr(ends.back())).bytes);
    }
    std::string name;
    for (size_t begin = 0; begin + 1 < ends.size();) {
      size_t end = ends.size() - 1;
      int32_t id = -1;
      for (; end > begin; --end) {
        name = begin > 0 ? prefix : "";
        name += word.substr(ends[begin], ends[end] - ends[begin]);
        if (id = tokens.find(name); id >= 0)
          break;
      }
      if (id < 0)
        return false;
      ids.push_back(id);
      begin = end;
    }
    return true;
  }

  std::string prefix;
  int32_t unknown = -1;
  int64_t mostCharacters = 0;
};

class WordLevel : public Model {
public:
  explicit WordLevel(Fields &fields) {
    readVocabulary(fields.need("vocab"), tokens);
    unknown = findUnknown(fields, tokens);
  }

  void encode(std::string_view word, WordCache &, std::vector<int32_t> &ids) const override {
    const int32_t id = tokens.find(word);
    ids.push_back(id < 0 ? unknown : id);
  }

private:
  int32_t unknown = -1;
};

} // namespace

std::unique_ptr<Model> hydra::text::makeWordPiece(Fields &fields) {
  return std::make_unique<WordPiece>(fields);
}

std::unique_ptr<Model> hydra::text::makeWordLevel(Fields &fields) {
  return std::make_unique<WordLevel>(fields);
}
