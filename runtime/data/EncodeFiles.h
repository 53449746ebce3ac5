// Files of text to tokens, by several threads.
#pragma once

#include "runtime/data/Documents.h"

#include <filesystem>
#include <functional>
#include <span>

namespace hydra::data {

/// A file, and how documents stand in it.
struct TextInput {
  std::filesystem::path path;
  TextFormat format;
};

/// Hands the tokens of the files, which may be packed, to `take`: chunk by chunk, in their order,
/// from the calling thread. What it hands on does not depend on the number of threads. Holds two
/// chunks a thread. Throws the Error of the first chunk that has one, and what `take` throws.
void encodeFiles(std::span<const TextInput> files, const text::Tokenizer &tokenizer, int threads,
                 const std::function<void(const EncodedChunk &)> &take);

} // namespace hydra::data
