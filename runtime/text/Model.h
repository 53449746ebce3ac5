// How a word becomes tokens.
#pragma once

#include "runtime/text/Fields.h"
#include "runtime/text/Hashing.h"
#include "runtime/text/Vocabulary.h"

#include <memory>
#include <string_view>
#include <vector>

namespace hydra::text {

class Model {
public:
  virtual ~Model() = default;

  /// Appends the ids of a word, which is not empty. `cache` belongs to this model. Throws Error
  /// for a word that the model has no tokens for, where it has no unknown token either.
  virtual void encode(std::string_view word, WordCache &cache, std::vector<int32_t> &ids) const = 0;

  /// Whether words may come as bytes, instead of as characters that stand for these; from then on
  /// they must. Once, before the first word.
  virtual bool takeBytes() { return false; }

  const Vocabulary &vocabulary() const { return tokens; }

protected:
  Vocabulary tokens;
};

/// The model that a tokenizer file describes. Throws Error that names the field.
std::unique_ptr<Model> makeModel(const Value &description);

// The kinds; `fields` is the description.
std::unique_ptr<Model> makeBpe(Fields &fields);
std::unique_ptr<Model> makeUnigram(Fields &fields);
std::unique_ptr<Model> makeWordPiece(Fields &fields);
std::unique_ptr<Model> makeWordLevel(Fields &fields);

} // namespace hydra::text
