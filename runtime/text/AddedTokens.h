// Tokens beside those of the model: they are found in the text before it is cut to words.
#pragma once

#include "runtime/text/Fields.h"
#include "runtime/text/Normalizers.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Vocabulary.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hydra::text {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool singleWord = false; // not inside of a word
  bool stripLeft = false;  // takes the spaces in front with it
  bool stripRight = false; // and those behind
  bool normalized = true;  // looked for in normalized text, as it is when it is normalized itself
  bool special = false;    // stands for no text
};

/// Where an added token, or text between, lies in a text.
struct AddedPart {
  size_t begin = 0, end = 0;
  int32_t id = -1; // -1: text, which is not empty
};

/// What of a text was typed by somebody, and which tokens are control tokens besides the special
/// ones.
struct Typed {
  std::span<const TextRange> parts;
  std::span<const int32_t> controls;

  bool overlaps(size_t begin, size_t end) const;
  bool isControl(const AddedToken &token) const;
};

class AddedTokens {
public:
  /// Reads the list `added_tokens` of a file; null: there are none. Throws Error that names the
  /// field, also for an id that is another token's in the vocabulary.
  AddedTokens(const std::optional<Value> &list, const Normalizer *normalizer,
              const Vocabulary &vocabulary);

  /// Cuts a text before it is normalized (`raw`), or afterwards. In parts that were typed, control
  /// tokens stay text.
  std::vector<AddedPart> split(std::string_view text, bool raw, const Typed &typed = {}) const;
  /// The first control token in the text that is looked for in normalized text only, and is not in
  /// what was typed; null: none.
  const AddedToken *findNormalizedControl(std::string_view text, const Typed &typed) const;

  const std::vector<AddedToken> &all() const { return tokens; }
  /// Null: there is none.
  const AddedToken *find(int32_t id) const;
  const AddedToken *find(std::string_view content) const;
  /// As decoders want it: normalized, if it is looked for like that.
  const std::string &nameOf(const AddedToken &token) const;
  /// Whether some special token has this name.
  bool isSpecial(std::string_view name) const;
  /// One above the largest id.
  size_t limit() const { return idLimit; }

private:
  /// Finds the longest of some texts at a place.
  class Matcher {
  public:
    void add(std::string_view text, size_t token);
    /// The next token from `from` on: its place in the list, and where it lies; false: none.
    bool find(std::string_view text, size_t from, size_t &token, size_t &begin, size_t &end) const;

  private:
    std::array<bool, 256> firstBytes = {};
    NumberTable children;           // by node << 8 | byte; 0 is the root
    std::vector<int64_t> nodes{-1}; // the token that ends there
  };

  std::vector<AddedToken> tokens;
  std::vector<std::string> names;
  std::unordered_map<int32_t, size_t> byId;
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> byContent;
  Matcher raw, afterwards;
  size_t idLimit = 0;
};

} // namespace hydra::text
