// Byte pair encoding: neighbours are merged, the pair that was learnt first at first.
#include "runtime/text/Model.h"
#include "runtime/text/Normalizers.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <limits>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

/// Symbols of a word as a list in an array, and the pairs that wait to be merged.
struct Scratch {
  struct Symbol {
    int32_t id = 0;
    int32_t before = 0, next = 0; // places; -1: none
  };
  struct Candidate {
    uint64_t order = 0; // rank, then place
    int32_t merged = 0;
    bool operator<(const Candidate &other) const { return order > other.order; }
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::vector<int32_t> ids;
  std::vector<uint64_t> pairs;
};

class Bpe : public Model {
public:
  explicit Bpe(Fields &fields)
      : unknownName(fields.text("unk_token", "")),
        prefix(fields.text("continuing_subword_prefix", "")),
        suffix(fields.text("end_of_word_suffix", "")), fuse(fields.flag("fuse_unk", false)),
        fallback(fields.flag("byte_fallback", false)),
        wholeWords(fields.flag("ignore_merges", false)) {
    if (const std::optional<Value> dropout = fields.find("dropout");
        dropout && dropout->number() != 0)
      dropout->fail("is {}; only 0 is supported, which gives the same tokens every time",
                    dropout->number());
    readVocabulary(fields.need("vocab"), tokens);
    if (const std::optional<Value> name = fields.find("unk_token")) {
      unknown = tokens.find(unknownName);
      if (unknown < 0)
        name->fail("is '{}', which is not in the vocabulary", support::shown(unknownName));
    }
    bytes = byteTokens(tokens);
    readMerges(fields.need("merges"));
    // Where a word is looked for as a whole, and where its ends are spelled in another way, words
    // are not cut.
    if (!wholeWords && prefix.empty() && suffix.empty())
      findInsides();
  }

  void encode(std::string_view word, WordCache &cache, std::vector<int32_t> &ids) const override {
    if (cuts) {
      while (!word.empty()) {
        const size_t end = firstPart(word);
        encodePart(word.substr(0, end), cache, ids);
        word.remove_prefix(end);
      }
    } else {
      encodePart(word, cache, ids);
    }
  }

  bool takeBytes() override {
    constexpr int values = 256;
    if (!prefix.empty() || !suffix.empty())
      return false;
    for (int value = 0; value < values; ++value) {
      const char byte = static_cast<char>(value);
      std::string name;
      appendByteLevel(name, std::string_view(&byte, 1));
      singles[static_cast<size_t>(value)] = tokens.find(name);
      if (singles[static_cast<size_t>(value)] < 0)
        return false;
    }
    if (wholeWords)
      for (size_t id = 0; id < tokens.limit(); ++id)
        if (const std::string *name = tokens.nameOf(static_cast<int32_t>(id)))
          addBytes(*name, static_cast<int32_t>(id));
    cuts = false; // words were cut already
    byBytes = true;
    return true;
  }

private:
  static uint64_t pairOf(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  void readMerges(const Value &list) {
    // Old files write a pair as a text with a space between.
    uint64_t rank = 0;
    std::string name;
    results.reserve(list.size());
    for (size_t i = 0; i < list.raw().size(); ++i) {
      const nlohmann::json &entry = list.raw()[i];
      const auto textOf = [](const nlohmann::json &text) -> std::string_view {
        return text.get_ref<const std::string &>();
      };
      std::string_view left, right;
      if (entry.is_string()) {
        const std::string_view text = textOf(entry);
        if (text.starts_with("#version"))
          continue;
        const size_t space = text.find(' ');
        if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
          list[i].fail("is '{}'; expected two tokens with a space between", support::shown(text));
        left = text.substr(0, space);
        right = text.substr(space + 1);
      } else {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
            !entry[1].is_string())
          list[i].fail("is no pair of tokens");
        left = textOf(entry[0]);
        right = textOf(entry[1]);
      }
      if (!right.starts_with(prefix))
        list[i].fail("'s second token '{}' does not begin with continuing_subword_prefix '{}'",
                     support::shown(right), support::shown(prefix));
      const auto idOf = [&](std::string_view name) {
        const int32_t id = tokens.find(name);
        if (id < 0)
          list[i].fail("needs the token '{}', which is not in the vocabulary",
                       support::shown(name));
        return id;
      };
      (name = left) += right.substr(prefix.size());
      const int32_t merged = idOf(name);
      merges.insert(pairOf(idOf(left), idOf(right)), rank++ << 32 | static_cast<uint32_t>(merged));
      results.push_back(merged);
    }
  }

  /// Which characters stand side by side inside of a token that merges make: between others, no
  /// merge will ever reach across, so that a word may be cut there.
  void findInsides() {
    for (const int32_t id : results) {
      std::string_view rest = *tokens.nameOf(id);
      Character left = rest.empty() ? Character{} : firstCharacter(rest);
      rest.remove_prefix(left.bytes);
      while (!rest.empty()) {
        const Character right = firstCharacter(rest);
        if (left.code < 0x80 && right.code < 0x80)
          asciiInside.set(left.code << 7 | right.code);
        else
          inside.insert(uint64_t{left.code} << 32 | right.code, 1);
        left = right;
        rest.remove_prefix(right.bytes);
      }
    }
    results = {};
    cuts = true;
  }

  bool isInside(char32_t left, char32_t right) const {
    return left < 0x80 && right < 0x80 ? asciiInside[left << 7 | right]
                                       : inside.find(uint64_t{left} << 32 | right) != nullptr;
  }

  /// Bytes of the part of a word that is encoded by itself. What the vocabulary does not know
  /// stays with its neighbours: several unknown characters may be one token.
  size_t firstPart(std::string_view word) const {
    Character left = firstCharacter(word);
    size_t at = left.bytes;
    while (at < word.size()) {
      const Character right = firstCharacter(word.substr(at));
      if (!isInside(left.code, right.code) &&
          tokens.find(word.substr(at - left.bytes, left.bytes)) >= 0 &&
          tokens.find(word.substr(at, right.bytes)) >= 0)
        return at;
      left = right;
      at += right.bytes;
    }
    return at;
  }

  void addBytes(std::string_view name, int32_t id) {
    std::string text;
    while (!name.empty()) {
      const Character c = firstCharacter(name);
      const int byte = byteOfCharacter(c.code);
      if (byte < 0)
        return; // no word of bytes is this token
      text.push_back(static_cast<char>(byte));
      name.remove_prefix(c.bytes);
    }
    words.insert_or_assign(std::move(text), id);
  }

  void encodePart(std::string_view word, WordCache &cache, std::vector<int32_t> &ids) const {
    const uint64_t hash = TextHash()(word);
    if (cache.append(word, hash, ids))
      return;
    const size_t before = ids.size();
    if (const int32_t whole = wholeWords ? findWhole(word) : -1; whole >= 0)
      ids.push_back(whole);
    else
      merge(word, ids);
    cache.keep(word, hash, ids.data() + before, ids.size() - before);
  }

  int32_t findWhole(std::string_view word) const {
    if (!byBytes)
      return tokens.find(word);
    const auto found = words.find(word);
    return found == words.end() ? -1 : found->second;
  }

  void merge(std::string_view word, std::vector<int32_t> &ids) const {
    static thread_local Scratch scratch;
    scratch.ids.clear();
    if (byBytes)
      for (const char byte : word)
        scratch.ids.push_back(singles[static_cast<unsigned char>(byte)]);
    else
      spell(word, scratch.ids);
    constexpr size_t fewSymbols = 24;
    if (scratch.ids.size() <= fewSymbols)
      mergeFew(scratch, ids);
    else
      mergeMany(scratch, ids);
  }

  /// The tokens of single characters.
  void spell(std::string_view word, std::vector<int32_t> &symbols) const {
    size_t unknowns = 0; // that wait
    std::string name;
    for (size_t at = 0; at < word.size();) {
      const std::string_view c = word.substr(at, firstCharacter(word.substr(at)).bytes);
      name.clear();
      if (at > 0)
        name += prefix;
      name += c;
      at += c.size();
      if (at == word.size())
        name += suffix;
      if (const int32_t id = tokens.find(name); id >= 0) {
        symbols.insert(symbols.end(), unknowns, unknown);
        unknowns = 0;
        symbols.push_back(id);
      } else if (fallback && std::all_of(name.begin(), name.end(), [&](char byte) {
                   return bytes[static_cast<unsigned char>(byte)] >= 0;
                 })) {
        for (const char byte : name)
          symbols.push_back(bytes[static_cast<unsigned char>(byte)]);
      } else if (unknown >= 0) {
        if (unknowns > 0 && !fuse)
          symbols.push_back(unknown);
        else
          unknowns = 1;
      }
    }
    symbols.insert(symbols.end(), unknowns, unknown);
  }

  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  /// Rank and result of merging two tokens.
  uint64_t ruleOf(int32_t left, int32_t right) const {
    const uint64_t *const found = merges.find(pairOf(left, right));
    return found ? *found : kNever;
  }

  /// Looks through all pairs for each merge, which is fastest where these are few.
  void mergeFew(Scratch &scratch, std::vector<int32_t> &out) const {
    std::vector<int32_t> &ids = scratch.ids;
    std::vector<uint64_t> &rules = scratch.pairs;
    rules.clear();
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      rules.push_back(ruleOf(ids[i], ids[i + 1]));
    while (!rules.empty()) {
      const auto best = std::min_element(rules.begin(), rules.end());
      if (*best == kNever)
        break;
      const auto i = static_cast<size_t>(best - rules.begin());
      ids[i] = static_cast<int32_t>(*best & 0xffffffff);
      ids.erase(ids.begin() + static_cast<ptrdiff_t>(i) + 1);
      rules.erase(best);
      if (i > 0)
        rules[i - 1] = ruleOf(ids[i - 1], ids[i]);
      if (i < rules.size())
        rules[i] = ruleOf(ids[i], ids[i + 1]);
    }
    out.insert(out.end(), ids.begin(), ids.end());
  }

  /// Keeps the pairs in a heap: n log n for any word.
  void mergeMany(Scratch &scratch, std::vector<int32_t> &out) const {
    auto &symbols = scratch.symbols;
    auto &heap = scratch.heap;
    const auto count = static_cast<int32_t>(scratch.ids.size());
    symbols.resize(scratch.ids.size());
    heap.clear();
    for (int32_t i = 0; i < count; ++i)
      symbols[static_cast<size_t>(i)] = {scratch.ids[static_cast<size_t>(i)], i - 1,
                                         i + 1 < count ? i + 1 : -1};
    const auto candidate = [&](int32_t place) -> std::optional<Scratch::Candidate> {
      const Scratch::Symbol &left = symbols[static_cast<size_t>(place)];
      if (left.next < 0)
        return std::nullopt;
      const uint64_t rule = ruleOf(left.id, symbols[static_cast<size_t>(left.next)].id);
      if (rule == kNever)
        return std::nullopt;
      return Scratch::Candidate{(rule & 0xffffffff00000000) | static_cast<uint32_t>(place),
                                static_cast<int32_t>(rule & 0xffffffff)};
    };
    const auto push = [&](int32_t place) {
      if (const auto found = candidate(place)) {
        heap.push_back(*found);
        std::push_heap(heap.begin(), heap.end());
      }
    };
    for (int32_t i = 0; i + 1 < count; ++i)
      if (const auto found = candidate(i))
        heap.push_back(*found);
    std::make_heap(heap.begin(), heap.end());
    while (!heap.empty()) {
      const Scratch::Candidate top = heap.front();
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
      const auto place = static_cast<int32_t>(top.order & 0xffffffff);
      Scratch::Symbol &left = symbols[static_cast<size_t>(place)];
      if (left.id < 0)
        continue; // merged into the one before
      const auto now = candidate(place);
      if (!now || now->order != top.order)
        continue; // another pair by now
      Scratch::Symbol &right = symbols[static_cast<size_t>(left.next)];
      left.id = top.merged;
      left.next = right.next;
      right.id = -1;
      if (left.next >= 0)
        symbols[static_cast<size_t>(left.next)].before = place;
      if (left.before >= 0)
        push(left.before);
      push(place);
    }
    for (const Scratch::Symbol &symbol : symbols)
      if (symbol.id >= 0)
        out.push_back(symbol.id);
  }

  std::string unknownName, prefix, suffix;
  bool fuse, fallback, wholeWords;
  int32_t unknown = -1;
  std::vector<int32_t> bytes; // tokens of bytes, for characters without one
  NumberTable merges;         // rank << 32 | result, by pair
  std::vector<int32_t> results;

  bool cuts = false;
  std::bitset<size_t{1} << 14> asciiInside;
  NumberTable inside;

  bool byBytes = false;
  std::array<int32_t, 256> singles = {}; // tokens of bytes, where words come as bytes
  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> words;
};

} // namespace

std::unique_ptr<Model> hydra::text::makeBpe(Fields &fields) {
  return std::make_unique<Bpe>(fields);
}
