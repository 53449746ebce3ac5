// Shards, as hydra-data writes them: tokens of whole documents, where these end, and what is not
// trained on, with a checksum of each.
#pragma once

#include "runtime/support/AtomicFile.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/StreamHash.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace hydra::data {

/// What a shard says of its tokens, which all shards of one set say alike.
struct ShardKind {
  uint64_t vocabulary = 0; // ids are below
  uint64_t tokenizer = 0;  // XXH3-64 of the tokenizer's file; 0: each byte is a token
  int64_t end = -1;        // the id behind every document; -1: there is none
  bool operator==(const ShardKind &) const = default;
};

/// The first 128 bytes of a shard, little-endian as x86-64 is. Behind it, each at the next multiple
/// of 8 bytes: the tokens, `width` bytes each; for each document the number of tokens up to its
/// end, 8 bytes; with a mask a bit for each token, from the lowest of a byte on, which is 1 where
/// the token is part of a prompt and no label.
struct ShardHeader {
  std::array<char, 8> magic;
  uint32_t version, width;
  ShardKind kind;
  uint64_t tokens, documents;
  uint64_t masked;                              // 1: there is a mask
  uint64_t tokensHash, documentsHash, maskHash; // XXH3-64 of each
  std::array<uint64_t, 4> unused;               // 0
  uint64_t hash;                                // XXH3-64 of the bytes before

  static constexpr std::array<char, 8> kMagic = {'\x89', 'H', 'y', 'T', 'o', 'k', '\r', '\n'};
  static constexpr uint32_t kVersion = 1;
};
static_assert(sizeof(ShardHeader) == 128);

/// Bytes of a token where ids are below `vocabulary`: 1, 2 or 4.
uint32_t tokenWidth(uint64_t vocabulary);

/// Writes a shard, which appears when it is complete, or not at all.
class ShardWriter {
public:
  /// Throws Error as AtomicFile does.
  ShardWriter(const support::OutputPath &path, const ShardKind &kind);

  /// Appends tokens of the document that is open, whose ids are below the vocabulary.
  void write(std::span<const int32_t> ids, bool prompt = false);
  /// Behind a document, which has tokens.
  void endDocument() { ends.push_back(head.tokens); }
  /// Returns the header. No document may be open.
  ShardHeader commit();

  uint64_t tokens() const { return head.tokens; }

private:
  void flush();
  uint64_t append(std::span<const std::byte> bytes); // returns their hash

  support::AtomicFile file;
  ShardHeader head = {};
  support::StreamHash hash; // of tokens
  std::vector<uint64_t> ends;
  std::vector<uint8_t> mask; // empty until there is a prompt
  std::vector<std::byte> packed;
};

/// A shard that is read. Any number of threads at a time.
class Shard {
public:
  /// Whether a file begins as a shard does.
  static bool matches(const support::InputFile &file);

  /// Throws Error, which names the file, where it is no shard of this version, its header is
  /// damaged, or it has not the size that this says. `file` must outlive it.
  explicit Shard(const support::InputFile &file);

  const ShardHeader &header() const { return head; }
  uint64_t tokens() const { return head.tokens; }

  /// Tokens [first, first + out.size()), all of which must be there. Throws Error at an id that is
  /// not below `limit`, and when the file has become shorter meanwhile.
  void read(uint64_t first, std::span<int32_t> out, uint64_t limit) const;
  /// The same of labels: -100 for tokens of prompts.
  void readLabels(uint64_t first, std::span<int32_t> out, uint64_t limit) const;
  /// Where documents end, in tokens. Throws Error where they are not in order, or do not end with
  /// the last token.
  std::vector<uint64_t> ends() const;
  /// Reads everything. Throws Error where a checksum, an id or the order of documents is wrong.
  void verify() const;

private:
  uint64_t hashOf(uint64_t begin, uint64_t size) const;

  const support::InputFile &file;
  ShardHeader head = {};
  uint64_t endsBegin = 0, maskBegin = 0;
};

/// Labels that count in no loss.
inline constexpr int32_t kIgnoredLabel = -100;

} // namespace hydra::data
