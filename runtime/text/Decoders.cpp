// The decoders of tokenizer files.
#include "runtime/text/Decoders.h"

#include "runtime/text/Normalizers.h"
#include "runtime/text/Patterns.h"
#include "runtime/text/Utf8.h"

#include <array>
#include <optional>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

/// Each token by itself: what it becomes depends on nothing but whether it is the first.
class PerToken : public Decoder {
public:
  virtual std::string decode(std::string token, bool first) const = 0;

  std::unique_ptr<DecoderRun> start(bool) const override {
    struct Run : DecoderRun {
      explicit Run(const PerToken &decoder) : decoder(decoder) {}
      void take(std::string token, const Next &next) override {
        next(decoder.decode(std::move(token), first));
        first = false;
      }
      void finish(const Next &) override {}
      const PerToken &decoder;
      bool first = true;
    };
    return std::make_unique<Run>(*this);
  }
};

/// Characters that stand for bytes.
class ByteLevel : public Decoder {
public:
  std::unique_ptr<DecoderRun> start(bool eager) const override {
    struct Run : DecoderRun {
      explicit Run(bool eager) : eager(eager) {}
      void take(std::string token, const Next &next) override {
        append(token);
        if (eager)
          if (std::string text = complete(false); !text.empty())
            next(std::move(text));
      }
      void finish(const Next &next) override { next(complete(true)); }

      void append(const std::string &token) {
        const size_t before = bytes.size();
        for (std::string_view rest = token; !rest.empty();) {
          const Character c = firstCharacter(rest);
          const int byte = byteOfCharacter(c.code);
          if (byte < 0) { // the token is text itself
            bytes.resize(before);
            bytes += token;
            return;
          }
          bytes.push_back(static_cast<char>(byte));
          rest.remove_prefix(c.bytes);
        }
      }
      /// The characters that are complete, or all that there is.
      std::string complete(bool all) {
        std::string text;
        size_t at = 0;
        while (at < bytes.size()) {
          Character c;
          const Utf8 kind = readUtf8(std::string_view(bytes).substr(at), c);
          if (kind == Utf8::cut && !all)
            break;
          if (kind == Utf8::character)
            text.append(bytes, at, c.bytes);
          else
            text += kReplacementCharacter;
          at += c.bytes;
        }
        bytes.erase(0, at);
        return text;
      }
      bool eager;
      std::string bytes;
    };
    return std::make_unique<Run>(eager);
  }
};

/// Tokens `<0x0A>` are bytes. Those in a row that are no text together are U+FFFD, each of them.
class ByteFallback : public Decoder {
public:
  std::unique_ptr<DecoderRun> start(bool eager) const override {
    struct Run : DecoderRun {
      explicit Run(bool eager) : eager(eager) {}
      void take(std::string token, const Next &next) override {
        if (const std::optional<char> byte = byteOf(token)) {
          bytes.push_back(*byte);
          if (eager)
            handCharacter(next);
          return;
        }
        hand(next);
        next(std::move(token));
      }
      void finish(const Next &next) override { hand(next); }

      static std::optional<char> byteOf(std::string_view token) {
        constexpr size_t size = 6; // of `<0x0A>`
        if (token.size() != size || !token.starts_with("<0x") || !token.ends_with('>'))
          return std::nullopt;
        int value = 0;
        for (const char c : token.substr(3, 2)) {
          const int digit = c >= '0' && c <= '9'   ? c - '0'
                            : c >= 'a' && c <= 'f' ? c - 'a' + 10
                            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                   : -1;
          if (digit < 0)
            return std::nullopt;
          value = value << 4 | digit;
        }
        return static_cast<char>(value);
      }
      void handCharacter(const Next &next) {
        Character c;
        if (readUtf8(bytes, c) == Utf8::character && c.bytes == bytes.size())
          hand(next);
      }
      void hand(const Next &next) {
        if (bytes.empty())
          return;
        if (findInvalidUtf8(bytes) == std::string_view::npos)
          next(bytes);
        else
          for (size_t i = 0; i < bytes.size(); ++i)
            next(std::string(kReplacementCharacter));
        bytes.clear();
      }
      bool eager;
      std::string bytes;
    };
    return std::make_unique<Run>(eager);
  }
};

/// All tokens become one.
class Fuse : public Decoder {
public:
  bool seesTokens() const override { return false; }
  std::unique_ptr<DecoderRun> start(bool) const override {
    struct Run : DecoderRun {
      void take(std::string token, const Next &) override { all += token; }
      void finish(const Next &next) override { next(std::move(all)); }
      std::string all;
    };
    return std::make_unique<Run>();
  }
};

class Metaspace : public PerToken {
public:
  explicit Metaspace(Fields &fields) : mark(fields.character("replacement")) {
    const std::string scheme = fields.text("prepend_scheme", "always");
    if (scheme != "always" && scheme != "first" && scheme != "never")
      fields.need("prepend_scheme")
          .fail("is '{}'; expected always, first or never", support::shown(scheme));
    prepends = scheme != "never" && fields.flag("add_prefix_space", true);
    fields.find("str_rep"); // the replacement again, in old files
    fields.flag("split", true);
  }
  std::string decode(std::string token, bool first) const override {
    std::string text;
    for (size_t at = 0; at < token.size();) {
      if (token.compare(at, mark.size(), mark) == 0) {
        text += first && prepends ? "" : " ";
        at += mark.size();
      } else {
        text += token[at++];
      }
    }
    return text;
  }

private:
  std::string mark;
  bool prepends;
};

class Replace : public PerToken {
public:
  explicit Replace(Fields &fields)
      : pattern(makePattern(fields.need("pattern"))), content(fields.text("content")) {}
  std::string decode(std::string token, bool) const override {
    std::string text;
    pattern.divide(token, [&](size_t begin, size_t end, bool matches) {
      if (matches)
        text += content;
      else
        text.append(token, begin, end - begin);
    });
    return text;
  }

private:
  Pattern pattern;
  std::string content;
};

/// Takes some characters from the beginning and the end.
class Strip : public Decoder {
public:
  explicit Strip(Fields &fields) : character(fields.character("content")) {
    constexpr int64_t limit = int64_t{1} << 31;
    fromBegin = fields.need("start").integer(limit);
    fromEnd = fields.need("stop").integer(limit);
  }
  /// Of all tokens together: a text that is handed on in parts.
  void stripWhole() { whole = true; }
  bool seesTokens() const override { return !whole; }

  std::unique_ptr<DecoderRun> start(bool) const override {
    struct Run : DecoderRun {
      explicit Run(const Strip &strip) : strip(strip) {}
      void take(std::string token, const Next &next) override {
        waiting += token;
        if (!strip.whole) {
          hand(next);
          dropped = 0;
          return;
        }
        dropBegin();
        // What may have to go stays until something else follows.
        size_t kept = 0;
        for (int64_t i = 0; i < strip.fromEnd && endsWith(waiting.size() - kept); ++i)
          kept += strip.character.size();
        std::string ready = waiting.substr(0, waiting.size() - kept);
        waiting.erase(0, ready.size());
        if (!ready.empty())
          next(std::move(ready));
      }
      void finish(const Next &next) override {
        if (strip.whole)
          hand(next);
      }
      void hand(const Next &next) {
        dropBegin();
        for (int64_t i = 0; i < strip.fromEnd && endsWith(waiting.size()); ++i)
          waiting.resize(waiting.size() - strip.character.size());
        next(std::move(waiting));
        waiting.clear();
      }
      void dropBegin() {
        while (dropped < strip.fromBegin && !waiting.empty()) {
          if (!waiting.starts_with(strip.character)) {
            dropped = strip.fromBegin;
            return;
          }
          waiting.erase(0, strip.character.size());
          ++dropped;
        }
      }
      bool endsWith(size_t size) const {
        return std::string_view(waiting).substr(0, size).ends_with(strip.character);
      }
      const Strip &strip;
      std::string waiting;
      int64_t dropped = 0;
    };
    return std::make_unique<Run>(*this);
  }

private:
  std::string character;
  int64_t fromBegin, fromEnd;
  bool whole = false;
};

class WordPiece : public PerToken {
public:
  explicit WordPiece(Fields &fields)
      : prefix(fields.text("prefix")), cleans(fields.flag("cleanup")) {}
  std::string decode(std::string token, bool first) const override {
    if (!first)
      token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
    return cleans ? cleaned(std::move(token)) : token;
  }

private:
  static std::string cleaned(std::string text) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 11> rules = {
        {{" .", "."},
         {" ?", "?"},
         {" !", "!"},
         {" ,", ","},
         {" ' ", "'"},
         {" n't", "n't"},
         {" 'm", "'m"},
         {" do not", " don't"},
         {" 's", "'s"},
         {" 've", "'ve"},
         {" 're", "'re"}}};
    for (const auto &[from, to] : rules)
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
        text.replace(at, from.size(), to);
        at += to.size();
      }
    return text;
  }

  std::string prefix;
  bool cleans;
};

/// What marks the end of a word becomes a space, but in the last token.
class Bpe : public Decoder {
public:
  explicit Bpe(Fields &fields) : suffix(fields.text("suffix")) {
    if (suffix.empty())
      fields.need("suffix").fail("is empty");
  }

  std::unique_ptr<DecoderRun> start(bool) const override {
    struct Run : DecoderRun {
      explicit Run(const std::string &suffix) : suffix(suffix) {}
      void take(std::string token, const Next &next) override {
        if (last)
          next(replaced(*last, " "));
        last = std::move(token);
      }
      void finish(const Next &next) override {
        if (last)
          next(replaced(*last, ""));
      }
      std::string replaced(std::string text, std::string_view content) const {
        for (size_t at = text.find(suffix); at != std::string::npos; at = text.find(suffix, at)) {
          text.replace(at, suffix.size(), content);
          at += content.size();
        }
        return text;
      }
      const std::string &suffix;
      std::optional<std::string> last;
    };
    return std::make_unique<Run>(suffix);
  }

private:
  std::string suffix;
};

class Spacing : public PerToken {
public:
  std::string decode(std::string token, bool first) const override {
    return first ? token : " " + token;
  }
};

/// Whether all tokens are one behind the decoders so far.
enum class State { tokens, fused };

void append(const Value &description, int depth, Decoders &all, State &state) {
  if (depth > kMostNested)
    description.fail("is nested more than {} deep", kMostNested);
  Fields fields(description);
  const Value type = fields.need("type");
  const std::string_view name = type.text();
  if (name == "Sequence") {
    const Value list = fields.need("decoders");
    for (size_t i = 0; i < list.size(); ++i)
      append(list[i], depth + 1, all, state);
    fields.finish();
    return;
  }
  // A text that is one token now goes on in parts where nobody sees a difference: nothing follows,
  // or what strips its ends.
  if (state == State::fused && name != "Fuse" && name != "Strip") {
    all.push_back(std::make_unique<Fuse>());
    state = State::tokens;
  }
  if (name == "ByteLevel") {
    fields.flag("add_prefix_space", true);
    fields.flag("trim_offsets", true);
    fields.flag("use_regex", true);
    all.push_back(std::make_unique<ByteLevel>());
    state = State::fused;
  } else if (name == "ByteFallback") {
    all.push_back(std::make_unique<ByteFallback>());
  } else if (name == "Fuse") {
    state = State::fused;
  } else if (name == "Metaspace") {
    all.push_back(std::make_unique<Metaspace>(fields));
  } else if (name == "Replace") {
    all.push_back(std::make_unique<Replace>(fields));
  } else if (name == "Strip") {
    auto strip = std::make_unique<Strip>(fields);
    if (state == State::fused)
      strip->stripWhole();
    all.push_back(std::move(strip));
  } else if (name == "WordPiece") {
    all.push_back(std::make_unique<WordPiece>(fields));
  } else if (name == "BPEDecoder") {
    all.push_back(std::make_unique<Bpe>(fields));
  } else {
    type.fail("is '{}', a decoder that is not supported", support::shown(name));
  }
  fields.finish();
}

} // namespace

Decoders hydra::text::makeDecoders(const Value &description) {
  Decoders all;
  State state = State::tokens;
  append(description, 0, all, state);
  return all;
}

std::unique_ptr<Decoder> hydra::text::makeSpacing() { return std::make_unique<Spacing>(); }
