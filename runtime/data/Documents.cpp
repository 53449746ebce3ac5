// Where files and documents are cut.
#include "runtime/data/Documents.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"
#include "runtime/support/ZeroByte.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string_view>

using namespace hydra::data;
using hydra::support::fail;
namespace support = hydra::support;
namespace text = hydra::text;

namespace {

constexpr size_t kLongDocument = size_t{4} << 20, kLongestLine = size_t{256} << 20;

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Whether a byte is not the first of a character in UTF-8.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Whether the tokens of the text around a place are those of its two sides.
bool tokensEndAt(std::string_view all, size_t place, const text::Tokenizer &tokenizer) {
  constexpr size_t around = 512;
  size_t begin = place - std::min(place, around), end = std::min(all.size(), place + around);
  while (begin < place && continues(all[begin]))
    ++begin;
  while (end < all.size() && end > place && continues(all[end]))
    --end;
  try {
    const auto encode = [&](size_t from, size_t to) {
      return tokenizer.encode(all.substr(from, to - from), text::Around::nothing);
    };
    std::vector<int32_t> sides = encode(begin, place);
    const std::vector<int32_t> behind = encode(place, end);
    sides.insert(sides.end(), behind.begin(), behind.end());
    return sides == encode(begin, end);
  } catch (const support::Error &) {
    return false; // whoever encodes the text says what is wrong with it
  }
}

/// The first separator from `begin` on; an empty text behind `all` where there is none.
std::string_view firstSeparator(std::string_view all, size_t begin,
                                std::span<const std::string> separators) {
  std::string_view first = all.substr(all.size());
  for (const std::string &separator : separators)
    if (const size_t at = all.find(separator, begin);
        at < static_cast<size_t>(first.data() - all.data()))
      first = all.substr(at, separator.size());
  return first;
}

/// Where the last separator ends, of those that follow one another from the front (two places of
/// one may overlap); 0 where there is none.
size_t endOfSeparators(std::string_view all, std::span<const std::string> separators) {
  std::vector<size_t> next(separators.size(), 0);
  const auto find = [&](size_t end) {
    for (size_t i = 0; i < next.size(); ++i)
      if (next[i] <= end && next[i] != std::string::npos)
        next[i] = all.find(separators[i], end);
  };
  find(0);
  for (size_t end = 0;;) {
    const auto first = std::ranges::min_element(next);
    if (first == next.end() || *first == std::string::npos)
      return end;
    end = *first + separators[static_cast<size_t>(first - next.begin())].size();
    find(end);
  }
}

std::string_view withoutLineBreaks(std::string_view document, bool begins, bool ends) {
  const auto isBreak = [](char c) { return c == '\n' || c == '\r'; };
  while (begins && !document.empty() && isBreak(document.front()))
    document.remove_prefix(1);
  while (ends && !document.empty() && isBreak(document.back()))
    document.remove_suffix(1);
  return document;
}

} // namespace

ChunkReader::ChunkReader(std::unique_ptr<ByteSource> from, std::string file,
                         const TextFormat &format, const text::Tokenizer &tokenizer)
    : source(std::move(from)), name(std::move(file)), format(format), tokenizer(tokenizer),
      separators(format.jsonLines ? std::vector<std::string>{"\n"} : format.separators) {}

void ChunkReader::fill() {
  while (!atEnd && buffer.size() < wanted) {
    const size_t before = buffer.size();
    buffer.resize(wanted);
    size_t count = 0;
    try {
      count = source->read(std::as_writable_bytes(std::span(buffer).subspan(before)));
    } catch (const support::Error &error) {
      fail("{}: {}", name, error.what());
    }
    buffer.resize(before + count);
    atEnd = count == 0;
  }
}

/// Where a chunk of the buffer ends; npos: more is needed.
size_t ChunkReader::findCut() const {
  size_t longest = 2;
  for (const std::string &separator : separators)
    longest = std::max(longest, separator.size());
  if (const size_t end = endOfSeparators(buffer, separators); end > 0)
    return end;
  if (format.jsonLines) {
    if (buffer.size() >= kLongestLine)
      fail("{}: line {} has more than {} MiB", name, line, kLongestLine >> 20);
    return std::string::npos;
  }
  if (buffer.size() < kLongDocument)
    return std::string::npos;
  constexpr size_t farthest = kChunk;
  constexpr int tries = 64;
  // A separator may begin at the end of the buffer.
  size_t at = buffer.size() - longest;
  const size_t last = at - std::min(at, farthest);
  for (int tried = 0; at > last && tried < tries; --at)
    if (buffer[at] == ' ' && isLetter(buffer[at - 1]) && isLetter(buffer[at + 1])) {
      if (tokensEndAt(buffer, at, tokenizer))
        return at;
      ++tried;
    }
  return std::string::npos;
}

void ChunkReader::take(size_t end, Chunk &chunk) {
  chunk.file = name;
  chunk.firstLine = line;
  chunk.firstByte = byte;
  chunk.begins = !inside;
  chunk.ends = end == buffer.size() && atEnd;
  chunk.text.assign(buffer, 0, end);
  chunk.ends |= std::ranges::any_of(
      separators, [&](const std::string &separator) { return chunk.text.ends_with(separator); });
  inside = !chunk.ends;
  line += static_cast<uint64_t>(std::count(chunk.text.begin(), chunk.text.end(), '\n'));
  byte += end;
  buffer.erase(0, end);
  wanted = kChunk;
}

bool ChunkReader::next(Chunk &chunk) {
  while (true) {
    fill();
    if (atEnd && buffer.size() <= kLongDocument) {
      if (buffer.empty())
        return false;
      take(buffer.size(), chunk);
      return true;
    }
    const size_t cut = findCut();
    if (cut != std::string::npos) {
      take(cut, chunk);
      return true;
    }
    if (atEnd) {
      take(buffer.size(), chunk);
      return true;
    }
    wanted = buffer.size() * 2;
  }
}

namespace {

/// Appends tokens of documents, or counts those that it cannot read.
class ChunkEncoder {
public:
  ChunkEncoder(const Chunk &chunk, const TextFormat &format, text::TextEncoder &encoder,
               EncodedChunk &out)
      : chunk(chunk), format(format), encoder(encoder), out(out) {}

  void encodeText() {
    const std::string_view all = chunk.text;
    size_t begin = 0;
    while (true) {
      const std::string_view separator = firstSeparator(all, begin, format.separators);
      const size_t found = static_cast<size_t>(separator.data() - all.data());
      const bool isLast = separator.empty();
      const bool begins = begin > 0 || chunk.begins, ends = !isLast || chunk.ends;
      std::string_view document = all.substr(begin, found - begin);
      if (!format.separators.empty())
        document = withoutLineBreaks(document, begins, ends);
      try {
        part(document, false, ends);
      } catch (const support::Error &error) {
        // What is written of a long document stays.
        if (!format.leaveOutBad || !begins || !ends)
          fail("{}: in the text from byte {} on: {}", chunk.file,
               chunk.firstByte + static_cast<size_t>(document.data() - all.data()), error.what());
        leaveOut();
      }
      if (isLast)
        return;
      begin = found + separator.size();
    }
  }

  void encodeLines() {
    std::string_view rest = chunk.text;
    for (uint64_t line = chunk.firstLine; !rest.empty(); ++line) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view text = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (text.find_first_not_of(" \t\r") == std::string_view::npos)
        continue;
      try {
        encodeLine(text);
      } catch (const support::Error &error) {
        if (!format.leaveOutBad)
          fail("{}: line {}: {}", chunk.file, line, error.what());
        leaveOut();
      }
    }
  }

private:
  void encodeLine(std::string_view line) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || support::hasZeroByte(line))
      fail("is no JSON object");
    if (format.response.empty())
      return part(textOf(object, format.field), false, true);
    const std::string_view prompt = textOf(object, format.prompt),
                           response = textOf(object, format.response);
    part(prompt, true, false);
    part(response, false, true);
  }

  static std::string_view textOf(const nlohmann::json &object, const std::string &field) {
    const auto found = object.find(field);
    if (found == object.end())
      fail("has no field '{}'", support::shown(field));
    if (!found->is_string())
      fail("its field '{}' is no text", support::shown(field));
    return found->get_ref<const std::string &>();
  }

  void part(std::string_view text, bool prompt, bool ends) {
    encoder.encode(text, out.ids);
    out.parts.push_back({out.ids.size(), prompt, ends});
    out.textBytes += text.size();
    if (ends)
      whole = out.parts.size();
  }

  /// Takes back what there is of a document.
  void leaveOut() {
    out.parts.resize(whole);
    out.ids.resize(out.parts.empty() ? 0 : out.parts.back().end);
    ++out.leftOut;
  }

  const Chunk &chunk;
  const TextFormat &format;
  text::TextEncoder &encoder;
  EncodedChunk &out;
  size_t whole = 0; // parts of whole documents
};

} // namespace

void hydra::data::encodeChunk(const Chunk &chunk, const TextFormat &format,
                              text::TextEncoder &encoder, EncodedChunk &encoded) {
  ChunkEncoder documents(chunk, format, encoder, encoded);
  if (format.jsonLines)
    documents.encodeLines();
  else
    documents.encodeText();
}
