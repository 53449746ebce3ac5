// Documents in files of text and of JSON lines, and their tokens.
#pragma once

#include "runtime/data/ByteSource.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hydra::data {

struct TextFormat {
  bool jsonLines = false; // else text
  /// Each of them ends a document of text; line breaks around a document are not part of it. None:
  /// a file is one, as it is.
  std::vector<std::string> separators = {};
  std::string field = "text"; // of a line, its document; or, where `response` is not empty, ...
  std::string prompt = {}, response = {}; // ... the fields of the two parts of a document
  bool leaveOutBad = false;               // documents that cannot be read are counted, and no Error
};

/// Some lines or documents of a file, or a part of a long document.
struct Chunk {
  std::string text;
  std::string file;                      // as messages call it
  uint64_t firstLine = 1, firstByte = 0; // of the text, in the file as it is unpacked
  bool begins = true, ends = true;       // whether documents begin, and end, with it
};

/// Cuts a file into chunks of about a megabyte, in a way that depends on the file, its format and
/// the tokenizer alone. A document is only cut where it is very long, and where the tokens of the
/// text around the cut are those of its two sides.
class ChunkReader {
public:
  /// `name` is what messages call the file; format and tokenizer must outlive the reader.
  ChunkReader(std::unique_ptr<ByteSource> source, std::string name, const TextFormat &format,
              const text::Tokenizer &tokenizer);

  /// False at the end. Throws Error as the source does, and for a line of more than 256 MiB.
  bool next(Chunk &chunk);

private:
  void fill();
  size_t findCut() const;
  void take(size_t end, Chunk &chunk);

  std::unique_ptr<ByteSource> source;
  std::string name;
  const TextFormat &format;
  const text::Tokenizer &tokenizer;
  std::vector<std::string> separators; // of what chunks hold whole
  std::string buffer;
  size_t wanted = kChunk;
  uint64_t line = 1, byte = 0; // of the buffer
  bool atEnd = false, inside = false;

  static constexpr size_t kChunk = size_t{1} << 20;
};

/// The tokens of a chunk.
struct EncodedChunk {
  struct Part {
    size_t end = 0;      // in `ids`, where the next one begins
    bool prompt = false; // not trained on
    bool ends = false;   // a document ends with it, unless that has no tokens
  };
  std::vector<int32_t> ids;
  std::vector<Part> parts;
  uint64_t textBytes = 0, leftOut = 0; // of documents; how many of them cannot be read
};

/// Appends to `encoded`. Throws Error, which names file and place, where a document cannot be read.
void encodeChunk(const Chunk &chunk, const TextFormat &format, text::TextEncoder &encoder,
                 EncodedChunk &encoded);

} // namespace hydra::data
