// Text and token files as one stream of token ids.
#pragma once

#include "runtime/data/Shard.h"
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
  /// Shards must be of the tokenizer with this hash; 0: of any.
  uint64_t tokenizerHash = 0;
  bool assumed = false; ///< nobody said what the format is: texts are refused
};

/// What tells the file of a tokenizer, or of the folder that it is in, from others: XXH3-64.
uint64_t hashOfTokenizer(const std::filesystem::path &path);

/// Files, one behind the other in the order given. Tokens are little-endian. A folder with a
/// manifest, and a manifest, stand for the shards that it lists.
class TokenFiles {
public:
  /// Opens the files. Throws Error with the file's name when one cannot be read, is empty, has a
  /// size that its width does not divide, or a header that does not fit, or holds what the
  /// tokenizer cannot encode; and for shards that are not what their manifest lists, of another
  /// tokenizer than others, or with ids that are not in the vocabulary.
  explicit TokenFiles(FilesOptions options);
  ~TokenFiles();
  TokenFiles(const TokenFiles &) = delete;
  TokenFiles &operator=(const TokenFiles &) = delete;

  uint64_t tokens() const { return total; }

  /// Tokens [first, first + out.size()), all of which must be there. Any number of threads at a
  /// time. Throws Error at an id that is not in the vocabulary, with file and position, and when a
  /// file has become shorter meanwhile.
  void read(uint64_t first, std::span<int32_t> out) const;
  /// The same of labels: -100 for tokens that are not trained on.
  void readLabels(uint64_t first, std::span<int32_t> out) const;

  /// What shards say of their tokens; null if not all files are shards.
  const ShardKind *kind() const { return allShards ? &shardKind : nullptr; }
  /// Whether some tokens are not trained on.
  bool masked() const { return anyMasked; }
  /// Where documents end, in tokens, ascending; of shards. Throws Error as Shard::ends does.
  std::vector<uint64_t> documentEnds() const;

  /// Tells other data from this: number of tokens and a hash of sizes and of parts of every file;
  /// of shards, of their headers, which have checksums of everything.
  std::string fingerprint() const;

private:
  struct File;

  void addFile(const std::filesystem::path &path);
  void addManifest(const std::filesystem::path &path);
  template <typename Read> void eachPart(uint64_t first, std::span<int32_t> out, Read read) const;

  FilesOptions options;
  ShardKind shardKind;
  bool allShards = true, anyMasked = false;
  std::vector<std::unique_ptr<File>> files;
  uint64_t total = 0;
};

} // namespace hydra::data
