// The most probable tokens of a word, each with a probability of its own.
#include "runtime/text/Model.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>
#include <limits>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

/// Names of tokens by their bytes.
class Trie {
public:
  Trie() { firstNodes.fill(kNone); }

  void add(std::string_view name, int32_t id) {
    uint32_t node = kNone;
    for (size_t i = 0; i < name.size(); ++i) {
      const auto byte = static_cast<unsigned char>(name[i]);
      uint32_t next = child(node, byte, i == 0);
      if (next == kNone) {
        next = static_cast<uint32_t>(ids.size());
        ids.push_back(-1);
        if (i == 0)
          firstNodes[byte] = next;
        else
          children.insert(uint64_t{node} << 8 | byte, next);
      }
      node = next;
    }
    if (node != kNone)
      ids[node] = id;
  }

  /// Calls `each(bytes, id)` for the names that `text` begins with, the shortest at first.
  template <typename Each> void forPrefixes(std::string_view text, const Each &each) const {
    uint32_t node = kNone;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]), i == 0);
      if (node == kNone)
        return;
      if (ids[node] >= 0)
        each(i + 1, ids[node]);
    }
  }

private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  uint32_t child(uint32_t node, unsigned char byte, bool first) const {
    if (first)
      return firstNodes[byte];
    const uint64_t *const found = children.find(uint64_t{node} << 8 | byte);
    return found ? static_cast<uint32_t>(*found) : kNone;
  }

  std::array<uint32_t, 256> firstNodes;
  NumberTable children; // by node << 8 | byte
  std::vector<int32_t> ids;
};

class Unigram : public Model {
public:
  explicit Unigram(Fields &fields) : fallback(fields.flag("byte_fallback", false)) {
    const Value list = fields.need("vocab");
    if (list.size() > static_cast<size_t>(kMostIds))
      list.fail("has {} tokens; at most {} are supported", list.size(), kMostIds);
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < list.size(); ++i) {
      const nlohmann::json &entry = list.raw()[i];
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string())
        list[i].fail("is no pair of a token and its score");
      const std::string_view name = entry[0].get_ref<const std::string &>();
      tokens.add(name, static_cast<int32_t>(i));
      trie.add(name, static_cast<int32_t>(i));
      scores.push_back(entry[1].is_number_float() ? entry[1].get<double>() : list[i][1].number());
      least = std::min(least, scores.back());
    }
    if (const std::optional<Value> id = fields.find("unk_id"))
      unknown = static_cast<int32_t>(id->integer(static_cast<int64_t>(list.size())));
    constexpr double penalty = 10; // of what no token spells, below the least probable one
    unknownScore = least - penalty;
    bytes = byteTokens(tokens);
  }

  void encode(std::string_view word, WordCache &cache, std::vector<int32_t> &ids) const override {
    const uint64_t hash = TextHash()(word);
    if (cache.append(word, hash, ids))
      return;
    const size_t before = ids.size();
    findBest(word, ids);
    cache.keep(word, hash, ids.data() + before, ids.size() - before);
  }

private:
  /// The best way to spell what ends at a byte.
  struct Best {
    double score = 0;
    size_t begin = std::string_view::npos; // of its last token; npos: nothing ends here
    int32_t id = -1;
  };

  void findBest(std::string_view word, std::vector<int32_t> &ids) const {
    static thread_local std::vector<Best> best;
    best.assign(word.size() + 1, {});
    for (size_t at = 0; at < word.size();) {
      const size_t one = firstCharacter(word.substr(at)).bytes;
      const double score = best[at].score;
      const auto isBetter = [&](size_t size, double value) {
        const Best &end = best[at + size];
        return end.begin == std::string_view::npos || value > end.score;
      };
      bool spelled = false; // a token is this character alone
      trie.forPrefixes(word.substr(at), [&](size_t size, int32_t id) {
        if (const double value = scores[static_cast<size_t>(id)] + score; isBetter(size, value))
          best[at + size] = {value, at, id};
        spelled |= size == one;
      });
      if (const double value = unknownScore + score; !spelled && isBetter(one, value)) {
        if (unknown < 0)
          support::fail("the text holds '{}', which no token spells, and the tokenizer has no "
                        "unknown token",
                        word.substr(at, one));
        best[at + one] = {value, at, unknown};
      }
      at += one;
    }
    // From the end; several unknown characters in a row are one.
    const size_t first = ids.size();
    for (size_t end = word.size(); end > 0;) {
      size_t begin = best[end].begin;
      if (best[end].id != unknown) {
        ids.push_back(best[end].id);
      } else {
        while (begin > 0 && best[begin].id == unknown)
          begin = best[begin].begin;
        appendUnknown(word.substr(begin, end - begin), ids);
      }
      end = begin;
    }
    std::reverse(ids.begin() + static_cast<ptrdiff_t>(first), ids.end());
  }

  /// Backwards.
  void appendUnknown(std::string_view text, std::vector<int32_t> &ids) const {
    if (const int32_t id = tokens.find(text); id >= 0) {
      ids.push_back(id);
      return;
    }
    const bool spelled = fallback && std::all_of(text.begin(), text.end(), [&](char byte) {
                           return bytes[static_cast<unsigned char>(byte)] >= 0;
                         });
    if (!spelled) {
      ids.push_back(unknown);
      return;
    }
    for (size_t i = text.size(); i-- > 0;)
      ids.push_back(bytes[static_cast<unsigned char>(text[i])]);
  }

  bool fallback;
  Trie trie;
  std::vector<double> scores;
  int32_t unknown = -1;
  double unknownScore = 0;
  std::vector<int32_t> bytes;
};

} // namespace

std::unique_ptr<Model> hydra::text::makeUnigram(Fields &fields) {
  return std::make_unique<Unigram>(fields);
}
