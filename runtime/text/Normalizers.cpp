// The normalizers of tokenizer files, but for the precompiled one.
#include "runtime/text/Normalizers.h"

#include "runtime/text/Patterns.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <array>
#include <vector>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

template <typename Each> void forEachCharacter(std::string_view text, const Each &each) {
  while (!text.empty()) {
    const Character c = firstCharacter(text);
    each(c.code, text.substr(0, c.bytes));
    text.remove_prefix(c.bytes);
  }
}

/// Writes something else for characters: `put(c, bytes, out)`.
template <typename Put> void rewrite(Normalizing &part, const Put &put) {
  std::string out;
  out.reserve(part.text.size());
  size_t read = 0, first = 0;
  forEachCharacter(part.text, [&](char32_t c, std::string_view bytes) {
    put(c, bytes, out);
    read += bytes.size();
    if (read <= part.fromFirst)
      first = out.size();
  });
  part = {std::move(out), first};
}

/// Drops characters.
template <typename Drop> void filter(Normalizing &part, const Drop &drop) {
  rewrite(part, [&](char32_t c, std::string_view bytes, std::string &out) {
    if (!drop(c))
      out += bytes;
  });
}

void lowercase(Normalizing &part) {
  rewrite(part, [](char32_t c, std::string_view, std::string &out) { appendLowercase(out, c); });
}

class Sequence : public Normalizer {
public:
  Sequence(Fields &fields, int depth);
  void apply(Normalizing &part) const override {
    for (const auto &normalizer : all)
      normalizer->apply(part);
  }

private:
  std::vector<std::unique_ptr<Normalizer>> all;
};

class UnicodeForm : public Normalizer {
public:
  explicit UnicodeForm(Form form) : form(form) {}
  void apply(Normalizing &part) const override {
    // As many characters as the first one becomes by itself: what others add to one of them does
    // not count.
    const std::string first =
        normalized(std::string_view(part.text).substr(0, part.fromFirst), form);
    part.text = normalized(part.text, form);
    part.fromFirst = 0;
    forEachCharacter(first, [&](char32_t, std::string_view) {
      const std::string_view rest = std::string_view(part.text).substr(part.fromFirst);
      part.fromFirst += rest.empty() ? 0 : firstCharacter(rest).bytes;
    });
  }

private:
  Form form;
};

class Lowercase : public Normalizer {
public:
  void apply(Normalizing &part) const override { lowercase(part); }
};

class StripSpace : public Normalizer {
public:
  explicit StripSpace(Fields &fields)
      : left(fields.flag("strip_left")), right(fields.flag("strip_right")) {}
  void apply(Normalizing &part) const override {
    const std::string_view text = part.text;
    size_t begin = 0, end = 0; // of what is left
    bool seen = false;
    size_t at = 0;
    forEachCharacter(text, [&](char32_t c, std::string_view bytes) {
      const size_t next = at + bytes.size();
      if (!isWhitespace(c)) {
        begin = seen ? begin : at;
        end = next;
        seen = true;
      }
      at = next;
    });
    if (!seen)
      begin = end = left ? text.size() : 0;
    if (!left)
      begin = 0;
    if (!right)
      end = text.size();
    const size_t first = part.fromFirst > begin ? std::min(part.fromFirst, end) - begin : 0;
    part = {part.text.substr(begin, end - begin), first};
  }

private:
  bool left, right;
};

class StripAccents : public Normalizer {
public:
  void apply(Normalizing &part) const override { filter(part, isMark); }
};

class Replace : public Normalizer {
public:
  explicit Replace(Fields &fields)
      : pattern(makePattern(fields.need("pattern"))), content(fields.text("content")) {}
  void apply(Normalizing &part) const override {
    std::string out;
    out.reserve(part.text.size());
    size_t first = 0;
    pattern.divide(part.text, [&](size_t begin, size_t end, bool matches) {
      const size_t before = out.size();
      if (!matches)
        out.append(part.text, begin, end - begin);
      else
        out += content;
      if (out.size() > kMostBytes)
        support::fail("the tokenizer's normalizers make more than {} MiB of a text",
                      kMostBytes >> 20);
      // What stands for several characters stands where the last of them was.
      if (matches && lastBefore(part.text, end) < part.fromFirst)
        first = out.size();
      else if (!matches && begin < part.fromFirst)
        first = before + std::min(part.fromFirst, end) - begin;
    });
    part = {std::move(out), first};
  }

private:
  /// Where the last character in front of a place begins.
  static size_t lastBefore(std::string_view text, size_t end) {
    return end == 0 ? 0 : end - lastCharacter(text.substr(0, end)).bytes;
  }

  static constexpr size_t kMostBytes = size_t{1} << 28;

  Pattern pattern;
  std::string content;
};

class Prepend : public Normalizer {
public:
  explicit Prepend(Fields &fields) : prefix(fields.text("prepend")) {}
  void apply(Normalizing &part) const override {
    if (part.text.empty())
      return;
    part.text.insert(0, prefix);
    if (part.fromFirst > 0)
      part.fromFirst += prefix.size();
  }

private:
  std::string prefix;
};

class Nmt : public Normalizer {
public:
  void apply(Normalizing &part) const override {
    filter(part, [](char32_t c) {
      return (c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f ||
             c == 0x8f || c == 0x9f;
    });
    rewrite(part, [](char32_t c, std::string_view bytes, std::string &out) {
      const bool space = c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 ||
                         (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 ||
                         c == 0x2581 || c == 0xfeff || c == 0xfffd;
      out += space ? " " : bytes;
    });
  }
};

class Bert : public Normalizer {
public:
  explicit Bert(Fields &fields)
      : clean(fields.flag("clean_text")), spaced(fields.flag("handle_chinese_chars")),
        lower(fields.flag("lowercase")), strip(fields.flag("strip_accents", lower)) {}
  void apply(Normalizing &part) const override {
    if (clean) {
      filter(part, [](char32_t c) {
        const bool kept = c == '\t' || c == '\n' || c == '\r';
        return c == 0 || c == 0xfffd || (!kept && isOther(c));
      });
      rewrite(part, [](char32_t c, std::string_view bytes, std::string &out) {
        out += isWhitespace(c) ? " " : bytes;
      });
    }
    if (spaced)
      rewrite(part, [](char32_t c, std::string_view bytes, std::string &out) {
        const bool chinese = isChinese(c);
        out += chinese ? " " : "";
        out += bytes;
        out += chinese ? " " : "";
      });
    if (strip) {
      UnicodeForm(Form::nfd).apply(part);
      filter(part, isNonspacingMark);
    }
    if (lower)
      lowercase(part);
  }

private:
  static bool isChinese(char32_t c) {
    constexpr std::array<std::pair<char32_t, char32_t>, 8> blocks = {{{0x4e00, 0x9fff},
                                                                      {0x3400, 0x4dbf},
                                                                      {0x20000, 0x2a6df},
                                                                      {0x2a700, 0x2b73f},
                                                                      {0x2b740, 0x2b81f},
                                                                      {0x2b920, 0x2ceaf},
                                                                      {0xf900, 0xfaff},
                                                                      {0x2f800, 0x2fa1f}}};
    for (const auto &[first, last] : blocks)
      if (c >= first && c <= last)
        return true;
    return false;
  }

  bool clean, spaced, lower, strip;
};

class ByteLevel : public Normalizer {
public:
  void apply(Normalizing &part) const override {
    rewrite(part, [](char32_t, std::string_view bytes, std::string &out) {
      appendByteLevel(out, bytes);
    });
  }
};

std::unique_ptr<Normalizer> make(const Value &description, int depth) {
  if (depth > kMostNested)
    description.fail("is nested more than {} deep", kMostNested);
  Fields fields(description);
  const Value type = fields.need("type");
  const std::string_view name = type.text();
  std::unique_ptr<Normalizer> made;
  if (name == "Sequence")
    made = std::make_unique<Sequence>(fields, depth);
  else if (name == "NFC")
    made = std::make_unique<UnicodeForm>(Form::nfc);
  else if (name == "NFD")
    made = std::make_unique<UnicodeForm>(Form::nfd);
  else if (name == "NFKC")
    made = std::make_unique<UnicodeForm>(Form::nfkc);
  else if (name == "NFKD")
    made = std::make_unique<UnicodeForm>(Form::nfkd);
  else if (name == "Lowercase")
    made = std::make_unique<Lowercase>();
  else if (name == "Strip")
    made = std::make_unique<StripSpace>(fields);
  else if (name == "StripAccents")
    made = std::make_unique<StripAccents>();
  else if (name == "Replace")
    made = std::make_unique<Replace>(fields);
  else if (name == "Prepend")
    made = std::make_unique<Prepend>(fields);
  else if (name == "Nmt")
    made = std::make_unique<Nmt>();
  else if (name == "BertNormalizer")
    made = std::make_unique<Bert>(fields);
  else if (name == "ByteLevel")
    made = std::make_unique<ByteLevel>();
  else if (name == "Precompiled")
    made = makePrecompiled(fields);
  else
    type.fail("is '{}', a normalizer that is not supported", support::shown(name));
  fields.finish();
  return made;
}

Sequence::Sequence(Fields &fields, int depth) {
  const Value list = fields.need("normalizers");
  for (size_t i = 0; i < list.size(); ++i)
    all.push_back(make(list[i], depth + 1));
}

/// Printable characters of Latin-1 stand for their bytes, the characters from U+0100 on for the
/// others in their order.
struct ByteTable {
  ByteTable() {
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
                             (byte >= 0xae && byte <= 0xff);
      const char32_t c = printable ? static_cast<char32_t>(byte) : next++;
      appendUtf8(texts[static_cast<size_t>(byte)], c);
      bytes[c] = byte;
    }
  }
  static constexpr size_t kCharacters = 0x144;
  std::array<std::string, 256> texts;
  std::array<int, kCharacters> bytes = [] {
    std::array<int, kCharacters> none = {};
    none.fill(-1);
    return none;
  }();
};

const ByteTable &byteTable() {
  static const ByteTable table;
  return table;
}

} // namespace

std::unique_ptr<Normalizer> hydra::text::makeNormalizer(const Value &description) {
  return make(description, 0);
}

void hydra::text::appendByteLevel(std::string &out, std::string_view bytes) {
  for (const char byte : bytes)
    out += byteTable().texts[static_cast<unsigned char>(byte)];
}

int hydra::text::byteOfCharacter(char32_t c) {
  return c < ByteTable::kCharacters ? byteTable().bytes[c] : -1;
}
