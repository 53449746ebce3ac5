// Text and token files as one stream of token ids.
#pragma once

#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hydra::data {

/// What a file without header holds.
enum class Format { bytes, uint16, uint32 };

struct FilesOptions {
  std::vector<std::filesystem::path> files;
  Format format = Format::bytes;
  /// Files may begin with llm.c's header (1024 bytes: magic 20240520 or 20240801, version, number
  /// of tokens), which then says the width. Never looked for in text whose tokens are bytes.
  int64_t vocabulary = 256; // ids must be below
  /// Files without a header are text that this encodes, when they are opened; its ids are below
  /// `vocabulary`. Null: they are what `format` says.
  const text::Tokenizer *tokenizer = nullptr;
};

/// Files, one behind the other in the order given. Tokens are little-endian.
class TokenFiles {
public:
  /// Opens the files. Throws Error with the file's name when one cannot be read, is empty, has a
  /// size that its width does not divide, or a header that does not fit, or holds what the
  /// tokenizer cannot encode.
  explicit TokenFiles(FilesOptions options);
  ~TokenFiles();
  TokenFiles(const TokenFiles &) = delete;
  TokenFiles &operator=(const TokenFiles &) = delete;

  uint64_t tokens() const { return total; }

  /// Tokens [first, first + out.size()), all of which must be there. Any number of threads at a
  /// time. Throws Error at an id that is not in the vocabulary, with file and position, and when a
  /// file has become shorter meanwhile.
  void read(uint64_t first, std::span<int32_t> out) const;

  /// Tells other data from this: number of tokens and a hash of sizes and of parts of every file.
  std::string fingerprint() const;

private:
  struct File;

  FilesOptions options;
  std::vector<std::unique_ptr<File>> files;
  uint64_t total = 0;
};

} // namespace hydra::data
