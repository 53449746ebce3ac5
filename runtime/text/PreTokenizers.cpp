// The pre-tokenizers of tokenizer files.
#include "runtime/text/PreTokenizers.h"

#include "runtime/text/Normalizers.h"
#include "runtime/text/Patterns.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <string>

using namespace hydra::text;
namespace support = hydra::support;

namespace {

/// What becomes of the parts that match.
enum class Behavior { removed, isolated, mergedWithPrevious, mergedWithNext, contiguous };

Behavior behaviorOf(const Value &value) {
  const std::string_view name = value.text();
  if (name == "Removed")
    return Behavior::removed;
  if (name == "Isolated")
    return Behavior::isolated;
  if (name == "MergedWithPrevious")
    return Behavior::mergedWithPrevious;
  if (name == "MergedWithNext")
    return Behavior::mergedWithNext;
  if (name == "Contiguous")
    return Behavior::contiguous;
  value.fail("is '{}'; expected Removed, Isolated, MergedWithPrevious, MergedWithNext or "
             "Contiguous",
             support::shown(name));
}

/// Takes the parts of a piece, in order and without gaps, and hands on what `behavior` makes of
/// them.
class Cutter {
public:
  Cutter(const Piece &piece, Behavior behavior, PieceSink &sink)
      : piece(piece), behavior(behavior), sink(sink) {}

  void part(size_t begin, size_t end, bool matches) {
    switch (behavior) {
    case Behavior::removed:
      if (!matches)
        hand(begin, end);
      return;
    case Behavior::isolated:
      hand(begin, end);
      return;
    case Behavior::mergedWithPrevious:
      joined(end, matches && !before);
      break;
    case Behavior::mergedWithNext:
      // The last one of matches in a row goes to what follows.
      joined(end, before && !matches);
      break;
    case Behavior::contiguous:
      joined(end, matches == before);
      break;
    }
    before = matches;
  }

  void finish() { hand(open, last); }

private:
  /// Goes on with what is open, or hands it on and opens the next.
  void joined(size_t end, bool goesOn) {
    if (!goesOn) {
      hand(open, last);
      open = last;
    }
    last = end;
  }

  void hand(size_t begin, size_t end) {
    if (end > begin)
      sink.take(piece.part(begin, end));
  }

  const Piece &piece;
  Behavior behavior;
  PieceSink &sink;
  size_t open = 0, last = 0; // what is not handed on yet
  bool before = false;       // whether the part before matches
};

/// Cuts at characters.
template <typename Matches>
void cutAtCharacters(const Piece &piece, Behavior behavior, PieceSink &sink,
                     const Matches &matches) {
  Cutter cutter(piece, behavior, sink);
  size_t done = 0, at = 0;
  while (at < piece.text.size()) {
    const Character c = firstCharacter(piece.text.substr(at));
    if (matches(c.code)) {
      if (at > done)
        cutter.part(done, at, false);
      cutter.part(at, at + c.bytes, true);
      done = at + c.bytes;
    }
    at += c.bytes;
  }
  if (at > done)
    cutter.part(done, at, false);
  cutter.finish();
}

void cutAtPattern(const Piece &piece, const Pattern &pattern, Behavior behavior, bool invert,
                  PieceSink &sink) {
  Cutter cutter(piece, behavior, sink);
  pattern.divide(piece.text, [&](size_t begin, size_t end, bool matches) {
    cutter.part(begin, end, matches != invert);
  });
  cutter.finish();
}

class Split : public PreTokenizer {
public:
  explicit Split(Fields &fields)
      : pattern(makePattern(fields.need("pattern"))), behavior(behaviorOf(fields.need("behavior"))),
        invert(fields.flag("invert")) {}
  void split(const Piece &piece, PieceSink &sink) const override {
    cutAtPattern(piece, pattern, behavior, invert, sink);
  }

private:
  Pattern pattern;
  Behavior behavior;
  bool invert;
};

/// A space in front, and the cuts of GPT-2.
class ByteLevel : public PreTokenizer {
public:
  ByteLevel(bool space, bool cuts)
      : space(space), cuts(cuts),
        words(Expression("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                         "\\s+(?!\\S)|\\s+")) {}
  void split(const Piece &piece, PieceSink &sink) const override {
    if (!space || piece.text.starts_with(' '))
      return cut(piece, sink);
    const std::string text = " " + std::string(piece.text);
    cut({text, piece.fromFirst > 0 ? piece.fromFirst + 1 : 0}, sink);
  }

private:
  void cut(const Piece &piece, PieceSink &sink) const {
    if (cuts)
      cutAtPattern(piece, words, Behavior::isolated, false, sink);
    else
      sink.take(piece);
  }

  bool space, cuts;
  Pattern words;
};

class ByteCharacters : public PreTokenizer {
public:
  void split(const Piece &piece, PieceSink &sink) const override {
    std::string text;
    appendByteLevel(text, piece.text.substr(0, piece.fromFirst));
    const size_t first = text.size();
    appendByteLevel(text, piece.text.substr(piece.fromFirst));
    sink.take({text, first});
  }
};

/// Spaces become a character, in front of which is cut.
class Metaspace : public PreTokenizer {
public:
  explicit Metaspace(Fields &fields) : mark(fields.character("replacement")), marks(mark) {
    const std::string scheme = fields.text("prepend_scheme", "always");
    if (scheme == "always")
      prepends = Prepends::always;
    else if (scheme == "first")
      prepends = Prepends::first;
    else if (scheme == "never")
      prepends = Prepends::never;
    else
      fields.need("prepend_scheme")
          .fail("is '{}'; expected always, first or never", support::shown(scheme));
    if (const std::optional<Value> old = fields.find("add_prefix_space"); old && !old->flag()) {
      if (fields.find("prepend_scheme") && prepends != Prepends::never)
        old->fail("is false, but prepend_scheme is {}", scheme);
      prepends = Prepends::never;
    }
    fields.find("str_rep"); // the replacement again, in old files
    cuts = fields.flag("split", true);
  }

  void split(const Piece &piece, PieceSink &sink) const override {
    const bool front =
        prepends == Prepends::always || (prepends == Prepends::first && piece.fromFirst > 0);
    std::string text;
    text.reserve(piece.text.size() + piece.text.size() / 2 + mark.size());
    if (front && !piece.text.starts_with(' ') && !piece.text.starts_with(mark))
      text = mark;
    size_t first = 0;
    for (size_t i = 0; i < piece.text.size(); ++i) {
      if (piece.text[i] == ' ')
        text += mark;
      else
        text += piece.text[i];
      if (i < piece.fromFirst)
        first = text.size();
    }
    const Piece changed = {text, first};
    if (cuts)
      cutAtPattern(changed, marks, Behavior::mergedWithNext, false, sink);
    else
      sink.take(changed);
  }

private:
  enum class Prepends { always, first, never };

  std::string mark;
  Pattern marks;
  Prepends prepends = Prepends::always;
  bool cuts = true;
};

/// Words, and what is neither word nor space.
class Whitespace : public PreTokenizer {
public:
  void split(const Piece &piece, PieceSink &sink) const override {
    enum class Kind { space, word, other };
    const auto kindOf = [](char32_t c) {
      return isWord(c) ? Kind::word : isWhitespace(c) ? Kind::space : Kind::other;
    };
    size_t begin = 0;
    while (begin < piece.text.size()) {
      const Kind kind = kindOf(firstCharacter(piece.text.substr(begin)).code);
      size_t end = begin;
      while (end < piece.text.size()) {
        const Character c = firstCharacter(piece.text.substr(end));
        if (kindOf(c.code) != kind)
          break;
        end += c.bytes;
      }
      if (kind != Kind::space)
        sink.take(piece.part(begin, end));
      begin = end;
    }
  }
};

/// Cuts at characters of one kind.
class AtCharacters : public PreTokenizer {
public:
  AtCharacters(bool (*matches)(char32_t), Behavior behavior)
      : matches(matches), behavior(behavior) {}
  void split(const Piece &piece, PieceSink &sink) const override {
    cutAtCharacters(piece, behavior, sink, matches);
  }

private:
  bool (*matches)(char32_t);
  Behavior behavior;
};

class AtDelimiter : public PreTokenizer {
public:
  explicit AtDelimiter(Fields &fields) : delimiter(fields.character("delimiter")) {}
  void split(const Piece &piece, PieceSink &sink) const override {
    cutAtPattern(piece, delimiter, Behavior::removed, false, sink);
  }

private:
  Pattern delimiter;
};

class FixedLength : public PreTokenizer {
public:
  explicit FixedLength(Fields &fields) {
    constexpr int64_t usual = 5, most = int64_t{1} << 31;
    const std::optional<Value> given = fields.find("length");
    length = given ? given->integer(most) : usual;
    if (length == 0)
      given->fail("is 0; expected characters, at least 1");
  }
  void split(const Piece &piece, PieceSink &sink) const override {
    size_t begin = 0, at = 0;
    for (int64_t characters = 1; at < piece.text.size(); ++characters) {
      at += firstCharacter(piece.text.substr(at)).bytes;
      if (characters % length == 0 || at == piece.text.size()) {
        sink.take(piece.part(begin, at));
        begin = at;
      }
    }
  }

private:
  int64_t length;
};

void append(const Value &description, int depth, PreTokenizers &all, bool &lastToBytes) {
  if (depth > kMostNested)
    description.fail("is nested more than {} deep", kMostNested);
  Fields fields(description);
  const Value type = fields.need("type");
  const std::string_view name = type.text();
  if (name != "Sequence" && lastToBytes) {
    all.push_back(makeByteCharacters()); // which was not the last one
    lastToBytes = false;
  }
  if (name == "Sequence") {
    const Value list = fields.need("pretokenizers");
    for (size_t i = 0; i < list.size(); ++i)
      append(list[i], depth + 1, all, lastToBytes);
  } else if (name == "ByteLevel") {
    const bool space = fields.flag("add_prefix_space");
    fields.flag("trim_offsets", true); // of offsets, which nobody asks for
    all.push_back(std::make_unique<ByteLevel>(space, fields.flag("use_regex", true)));
    lastToBytes = true;
  } else if (name == "Split") {
    all.push_back(std::make_unique<Split>(fields));
  } else if (name == "Metaspace") {
    all.push_back(std::make_unique<Metaspace>(fields));
  } else if (name == "Whitespace") {
    all.push_back(std::make_unique<Whitespace>());
  } else if (name == "WhitespaceSplit") {
    all.push_back(std::make_unique<AtCharacters>(isWhitespace, Behavior::removed));
  } else if (name == "Punctuation") {
    const std::optional<Value> behavior = fields.find("behavior");
    all.push_back(std::make_unique<AtCharacters>(isPunctuation, behavior ? behaviorOf(*behavior)
                                                                         : Behavior::isolated));
  } else if (name == "Digits") {
    all.push_back(std::make_unique<AtCharacters>(
        isNumeric, fields.flag("individual_digits") ? Behavior::isolated : Behavior::contiguous));
  } else if (name == "BertPreTokenizer") {
    all.push_back(std::make_unique<AtCharacters>(isWhitespace, Behavior::removed));
    all.push_back(std::make_unique<AtCharacters>(isPunctuation, Behavior::isolated));
  } else if (name == "CharDelimiterSplit") {
    all.push_back(std::make_unique<AtDelimiter>(fields));
  } else if (name == "FixedLength") {
    all.push_back(std::make_unique<FixedLength>(fields));
  } else {
    type.fail("is '{}', a pre-tokenizer that is not supported", support::shown(name));
  }
  fields.finish();
}

} // namespace

PreTokenizers hydra::text::makePreTokenizers(const Value &description, bool &lastToBytes) {
  PreTokenizers all;
  lastToBytes = false;
  append(description, 0, all, lastToBytes);
  return all;
}

std::unique_ptr<PreTokenizer> hydra::text::makeByteCharacters() {
  return std::make_unique<ByteCharacters>();
}
