// How text is cut to the words that a model encodes one by one.
#pragma once

#include "runtime/text/Fields.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace hydra::text {

/// A part of a text, which is not empty.
struct Piece {
  std::string_view text;
  size_t fromFirst = 0; // as in Normalizing

  Piece part(size_t begin, size_t end) const {
    const size_t first = fromFirst > begin ? std::min(fromFirst, end) - begin : 0;
    return {text.substr(begin, end - begin), first};
  }
};

/// Who takes pieces, in their order. A piece's text is valid during the call.
class PieceSink {
public:
  virtual ~PieceSink() = default;
  virtual void take(const Piece &piece) = 0;
};

class PreTokenizer {
public:
  virtual ~PreTokenizer() = default;
  /// Hands on the pieces of a piece. Throws Error when an expression takes too many steps.
  virtual void split(const Piece &piece, PieceSink &sink) const = 0;
};

/// One after the other, each on what the one before hands on.
using PreTokenizers = std::vector<std::unique_ptr<PreTokenizer>>;

/// The pre-tokenizers that a tokenizer file describes, in one list. `lastToBytes` is set when they
/// end with one that writes every byte as a character, which is then left out for models that know
/// tokens as bytes. Throws Error that names the field.
PreTokenizers makePreTokenizers(const Value &description, bool &lastToBytes);

/// What writes every byte as a character.
std::unique_ptr<PreTokenizer> makeByteCharacters();

} // namespace hydra::text
