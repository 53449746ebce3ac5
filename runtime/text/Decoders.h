// How names of tokens become text again.
#pragma once

#include "runtime/text/Fields.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hydra::text {

/// Takes the names of tokens one after the other, and hands on texts.
class DecoderRun {
public:
  using Next = std::function<void(std::string)>;

  virtual ~DecoderRun() = default;
  virtual void take(std::string token, const Next &next) = 0;
  /// What still waits.
  virtual void finish(const Next &next) = 0;
};

class Decoder {
public:
  virtual ~Decoder() = default;
  /// For one text. `eager` hands on characters as soon as they are complete, whatever follows:
  /// where bytes turn out to be no text, characters before them have gone already.
  virtual std::unique_ptr<DecoderRun> start(bool eager) const = 0;
  /// Whether what it makes of a text depends on where tokens end: those before it must not be
  /// eager.
  virtual bool seesTokens() const { return true; }
};

/// One after the other, each on what the one before hands on.
using Decoders = std::vector<std::unique_ptr<Decoder>>;

/// The decoders that a tokenizer file describes, in one list. Throws Error that names the field.
Decoders makeDecoders(const Value &description);

/// Where a file has no decoder: names with spaces between.
std::unique_ptr<Decoder> makeSpacing();

} // namespace hydra::text
