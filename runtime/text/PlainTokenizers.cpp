// Tokenizers without a file: bytes, and ids as numbers.
#include "runtime/text/Tokenizer.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <charconv>

using namespace hydra::text;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

constexpr int64_t kByteValues = 256;

/// Hands on bytes as they are, once they are a character or can become none.
class ByteStream : public TextStream {
public:
  std::string add(int32_t id) override {
    if (id < 0 || id >= kByteValues)
      fail("token id {} is no byte", id);
    waiting.push_back(static_cast<char>(id));
    size_t complete = 0;
    Character found;
    while (complete < waiting.size() &&
           readUtf8(std::string_view(waiting).substr(complete), found) != Utf8::cut)
      complete += found.bytes;
    std::string text = waiting.substr(0, complete);
    waiting.erase(0, complete);
    return text;
  }
  std::string finish() override { return std::move(waiting); }

private:
  std::string waiting;
};

class ByteTokenizer : public Tokenizer {
public:
  std::vector<int32_t> encode(std::string_view text, Around) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (const char c : text)
      ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::unique_ptr<TextStream> stream(Specials) const override {
    return std::make_unique<ByteStream>();
  }
  int64_t idLimit() const override { return kByteValues; }
  std::optional<int32_t> find(std::string_view token) const override {
    return token.size() == 1 ? std::optional<int32_t>(static_cast<unsigned char>(token[0]))
                             : std::nullopt;
  }
};

/// Of tokenizers that learn nothing.
class PlainEncoder : public TextEncoder {
public:
  explicit PlainEncoder(const Tokenizer &tokenizer) : tokenizer(tokenizer) {}
  void encode(std::string_view text, std::vector<int32_t> &ids) override {
    const std::vector<int32_t> own = tokenizer.encode(text, Around::nothing);
    ids.insert(ids.end(), own.begin(), own.end());
  }

private:
  const Tokenizer &tokenizer;
};

/// A stream that has read the tokens before. What it has not handed on of them, because it may
/// change or is no whole character, is there as well and is left out of what follows.
class StreamBehind : public TextStream {
public:
  StreamBehind(const Tokenizer &tokenizer, std::span<const int32_t> ids)
      : stream(tokenizer.stream()) {
    const std::unique_ptr<TextStream> same = tokenizer.stream();
    for (const int32_t id : ids) {
      stream->add(id);
      same->add(id);
    }
    owed = same->finish();
  }
  std::string add(int32_t id) override { return withoutOwed(stream->add(id)); }
  std::string finish() override { return withoutOwed(stream->finish()); }

private:
  std::string withoutOwed(std::string text) {
    if (text.empty())
      return text;
    const auto same = std::ranges::mismatch(text, owed).in1 - text.begin();
    const bool more = same == std::ssize(text); // of it may follow
    owed.erase(0, more ? static_cast<size_t>(same) : owed.size());
    text.erase(0, static_cast<size_t>(same));
    return text;
  }

  std::unique_ptr<TextStream> stream;
  std::string owed;
};

class IdStream : public TextStream {
public:
  std::string add(int32_t id) override { return fmt::format(" {}", id); }
  std::string finish() override { return ""; }
};

class IdTokenizer : public Tokenizer {
public:
  std::vector<int32_t> encode(std::string_view text, Around) const override {
    std::vector<int32_t> ids;
    const char *at = text.data(), *end = at + text.size();
    while (at != end) {
      if (*at == ' ' || *at == ',') {
        ++at;
        continue;
      }
      int32_t id = 0;
      const auto [rest, error] = std::from_chars(at, end, id);
      if (error != std::errc())
        fail("cannot read token ids from '{}' at '{}'; expected numbers", support::shown(text),
             support::shown(std::string_view(at, static_cast<size_t>(end - at))));
      ids.push_back(id);
      at = rest;
    }
    return ids;
  }
  std::unique_ptr<TextStream> stream(Specials) const override {
    return std::make_unique<IdStream>();
  }
  int64_t idLimit() const override { return 0; }
  std::optional<int32_t> find(std::string_view) const override { return std::nullopt; }
};

} // namespace

std::unique_ptr<TextEncoder> Tokenizer::encoder() const {
  return std::make_unique<PlainEncoder>(*this);
}

std::vector<int32_t> Tokenizer::encodeTyped(std::string_view text, std::span<const TextRange>,
                                            std::span<const int32_t>) const {
  return encode(text, Around::nothing); // no token has a name
}

std::string Tokenizer::decode(std::span<const int32_t> ids, Specials specials) const {
  const std::unique_ptr<TextStream> text = stream(specials);
  std::string all;
  for (const int32_t id : ids)
    all += text->add(id);
  return all + text->finish();
}

std::unique_ptr<TextStream> Tokenizer::streamBehind(std::span<const int32_t> ids) const {
  return std::make_unique<StreamBehind>(*this, ids);
}

const std::vector<int32_t> &Tokenizer::stopIds() const {
  static const std::vector<int32_t> none;
  return none;
}

void hydra::text::checkIds(const Tokenizer &tokenizer, std::string_view name, int64_t vocabulary) {
  if (tokenizer.idLimit() > vocabulary)
    fail("{} has token ids up to {}; the model knows ids in [0, {})",
         support::shownPath(std::filesystem::path(name)), tokenizer.idLimit() - 1, vocabulary);
}

std::unique_ptr<Tokenizer> hydra::text::makeByteTokenizer() {
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> hydra::text::makeIdTokenizer() {
  return std::make_unique<IdTokenizer>();
}
