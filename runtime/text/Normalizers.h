// What is done to text before it is cut.
#pragma once

#include "runtime/text/Fields.h"

#include <cstddef>
#include <memory>
#include <string>

namespace hydra::text {

/// A part of a text on its way to words.
struct Normalizing {
  std::string text;
  /// How many of its first bytes come from the first character of the whole text, or stand before
  /// it.
  size_t fromFirst = 0;
};

class Normalizer {
public:
  virtual ~Normalizer() = default;
  /// Changes valid UTF-8 to valid UTF-8. Throws Error when an expression takes too many steps.
  virtual void apply(Normalizing &part) const = 0;
};

/// The normalizer that a tokenizer file describes. Throws Error that names the field.
std::unique_ptr<Normalizer> makeNormalizer(const Value &description);

/// The one that SentencePiece compiled to a map. Throws Error that names the field.
std::unique_ptr<Normalizer> makePrecompiled(Fields &fields);

/// Appends the character that stands for each byte where text is cut into bytes.
void appendByteLevel(std::string &out, std::string_view bytes);
/// The byte that a character stands for; -1: none.
int byteOfCharacter(char32_t c);

/// Components contain each other to this depth.
inline constexpr int kMostNested = 16;

} // namespace hydra::text
