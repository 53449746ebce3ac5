// Random models that go on with a text.
#pragma once

#include <cstdint>
#include <string>

namespace hydra::test {

constexpr int64_t kTextVocabulary = 97;

/// A model with an entry @logits(%tokens [B, S]) of kTextVocabulary scores: operations that look at
/// a token and those before it, in random order on random values of `width` numbers a token, a
/// multiple of 8. The same on every platform.
std::string randomCausalModel(uint64_t seed, int64_t width = 8);

} // namespace hydra::test
