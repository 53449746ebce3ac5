// How text and token ids belong together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::text {

/// Text of tokens that come one after the other. What a call returns is never cut inside a
/// character: bytes of an incomplete one wait for those that complete it.
class TextStream {
public:
  virtual ~TextStream() = default;

  /// What a token adds; empty while nothing is complete. Throws Error for an id outside of the
  /// tokenizer's.
  virtual std::string add(int32_t id) = 0;
  /// What still waits. Once, behind the last token.
  virtual std::string finish() = 0;
};

/// Whether encoding adds what the tokenizer puts around every text (a beginning, an end).
enum class Around { nothing, specialTokens };

/// Whether decoding leaves out tokens that stand for no text.
enum class Specials { leaveOut, show };

/// Text to ids and back. Any number of threads at a time.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  /// The ids of a text. Throws Error where the text is none that the tokenizer can read.
  virtual std::vector<int32_t> encode(std::string_view text,
                                      Around around = Around::specialTokens) const = 0;

  /// The text of tokens; bytes that are no UTF-8 are U+FFFD where the tokenizer's text is UTF-8.
  /// Throws Error for an id outside of the tokenizer's.
  std::string decode(std::span<const int32_t> ids, Specials specials = Specials::leaveOut) const;

  /// The same of tokens one after the other. The stream must not outlive the tokenizer.
  virtual std::unique_ptr<TextStream> stream(Specials specials = Specials::leaveOut) const = 0;

  /// Ids are in [0, idLimit()); 0: the tokenizer does not know.
  virtual int64_t idLimit() const = 0;

  /// The id of a token by its name, `<|im_end|>` for example; nothing if there is none.
  virtual std::optional<int32_t> find(std::string_view token) const = 0;

  /// Ids behind which generated text ends, in ascending order; empty where nothing says so.
  virtual const std::vector<int32_t> &stopIds() const;
};

/// Each byte is a token, its id the byte. Text may hold anything.
std::unique_ptr<Tokenizer> makeByteTokenizer();

/// Ids written as decimal numbers with spaces or commas between.
std::unique_ptr<Tokenizer> makeIdTokenizer();

} // namespace hydra::text
