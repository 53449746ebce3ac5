// The list of the shards of a set.
#pragma once

#include "runtime/data/Shard.h"
#include "runtime/support/TemporaryFolder.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::data {

struct Manifest {
  struct Entry {
    std::string file; // in the folder of the manifest
    uint64_t tokens = 0, documents = 0;
    uint64_t hash = 0; // of the shard's header, which has those of its content
  };
  ShardKind kind;
  std::string tokenizer = {}; // as hydra-data was given it, for people
  std::vector<Entry> shards = {};

  uint64_t tokens() const;
  uint64_t documents() const;
};

inline constexpr const char *kManifestName = "manifest.json";

std::string manifestText(const Manifest &manifest);
/// Throws Error, which begins with `name`, where it is no manifest of this version.
Manifest parseManifest(std::string_view text, const std::string &name);
Manifest readManifest(const std::filesystem::path &path);

/// Throws Error where a shard is not the one that a manifest lists.
void checkEntry(const Manifest &manifest, const Manifest::Entry &entry, const Shard &shard,
                const std::string &name);

/// Writes a folder of shards and its manifest, which appears when it is complete, or not at all.
class ShardSetWriter {
public:
  /// Throws Error where `folder` exists, or its parent is none that can be written.
  ShardSetWriter(std::filesystem::path folder, Manifest manifest, uint64_t shardTokens);
  ShardSetWriter(const ShardSetWriter &) = delete;
  ShardSetWriter &operator=(const ShardSetWriter &) = delete;

  /// Appends tokens of the document that is open. A shard is ended behind the first document with
  /// which it has `shardTokens`.
  void write(std::span<const int32_t> ids, bool prompt);
  void endDocument();
  /// Throws Error where nothing was written.
  const Manifest &commit();

private:
  void endShard();

  std::filesystem::path target;
  std::optional<support::TemporaryFolder> temporary;
  Manifest manifest;
  uint64_t shardTokens;
  std::unique_ptr<ShardWriter> shard; // null: the next token begins one
};

} // namespace hydra::data
