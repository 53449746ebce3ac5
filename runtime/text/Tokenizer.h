// How text and token ids belong together.
#pragma once

#include <cstdint>
#include <filesystem>
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

  /// What a token adds; empty while nothing is complete, and for an id that is no token (a model
  /// may have more ids than its tokenizer). Throws Error for a negative id, and where each token is
  /// a byte, for one that is none.
  virtual std::string add(int32_t id) = 0;
  /// What still waits. Once, behind the last token.
  virtual std::string finish() = 0;
};

/// Encodes texts one after the other, and keeps what it has learnt of words, so that many short
/// ones are as fast as a long one. For one thread; must not outlive the tokenizer.
class TextEncoder {
public:
  virtual ~TextEncoder() = default;

  /// Appends the ids of a text, which are those of Tokenizer::encode with nothing around. Throws
  /// Error as that does.
  virtual void encode(std::string_view text, std::vector<int32_t> &ids) = 0;
};

/// Whether encoding adds what the tokenizer puts around every text (a beginning, an end).
enum class Around { nothing, specialTokens };

/// Whether decoding leaves out tokens that stand for no text.
enum class Specials { leaveOut, show };

/// A part of a text: its bytes from `begin` on, up to `end`.
struct TextRange {
  size_t begin = 0, end = 0;
};

/// Text to ids and back. Any number of threads at a time.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  /// The ids of a text. Throws Error where the text is none that the tokenizer can read.
  virtual std::vector<int32_t> encode(std::string_view text,
                                      Around around = Around::specialTokens) const = 0;

  /// For many texts.
  virtual std::unique_ptr<TextEncoder> encoder() const;

  /// The ids of a text of which parts, in ascending order, were typed by somebody: there the names
  /// of special tokens and of those in `controls` are text. Nothing is put around. Throws Error as
  /// `encode` does, and where what was typed makes such a token all the same.
  virtual std::vector<int32_t> encodeTyped(std::string_view text, std::span<const TextRange> typed,
                                           std::span<const int32_t> controls) const;

  /// The text of tokens; where it is UTF-8, U+FFFD stands for bytes that are none. Throws Error as
  /// TextStream::add does.
  virtual std::string decode(std::span<const int32_t> ids,
                             Specials specials = Specials::leaveOut) const;

  /// The same of tokens one after the other. The stream must not outlive the tokenizer.
  virtual std::unique_ptr<TextStream> stream(Specials specials = Specials::leaveOut) const = 0;

  /// The text of tokens that follow others, whose text is there already: what they add to it, with
  /// the space between two words that decoders leave out in front of a text.
  std::unique_ptr<TextStream> streamBehind(std::span<const int32_t> ids) const;

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

/// The tokenizer of a file as Hugging Face's library writes it, `tokenizer.json`, or of the file of
/// that name in a folder. Ids behind which
/// a text ends are those of `eos_token_id` in `generation_config.json` beside it, or of `eos_token`
/// in `tokenizer_config.json`. Text to encode must be UTF-8; it is neither truncated nor padded,
/// whatever the file says. Throws Error that names the field for what the file has and this does
/// not know, and for whatever does not fit together.
std::unique_ptr<Tokenizer> readTokenizer(const std::filesystem::path &path);

/// The file that such a path means.
std::filesystem::path tokenizerFile(const std::filesystem::path &path);

/// The tokenizer of the content of such a file, which messages call `name`; nothing is beside it.
std::unique_ptr<Tokenizer> parseTokenizer(std::string_view content, const std::string &name);

/// Throws Error when a tokenizer, which messages call `name`, has ids that a model with ids in
/// [0, vocabulary) does not know.
void checkIds(const Tokenizer &tokenizer, std::string_view name, int64_t vocabulary);

} // namespace hydra::text
