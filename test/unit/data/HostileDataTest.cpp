// A hundred thousand changes of shards, JSON lines, packed files and manifests: each is read, or
// refused in one line.
#include "test/unit/data/HostileData.h"
#include "test/unit/data/DataFolder.h"

#include <xxhash.h>

#include <cstring>
#include <random>

using namespace hydra::data;

namespace {

class HostileData : public DataFolder {
protected:
  using Random = std::mt19937_64;

  /// Some bytes changed, taken out, put in, doubled, or the end cut off.
  static std::string changed(std::string bytes, Random &random) {
    for (uint64_t i = 0, count = 1 + random() % 4; i < count; ++i) {
      const size_t at = random() % (bytes.size() + 1), length = random() % 16;
      switch (random() % 6) {
      case 0:
        bytes.erase(at, length);
        break;
      case 1:
        bytes.insert(at, std::string(length, static_cast<char>(random())));
        break;
      case 2:
        bytes.insert(at, bytes.substr(random() % (bytes.size() + 1), length));
        break;
      case 3:
        if (random() % 8 == 0)
          bytes.resize(at);
        break;
      default:
        if (at < bytes.size())
          bytes[at] = random() % 2 == 0 ? static_cast<char>(random())
                                        : static_cast<char>(bytes[at] ^ 1 << random() % 8);
      }
    }
    return bytes;
  }

  /// Changes of the header that its hash does not give away.
  static void correctHash(std::string &shard) {
    if (shard.size() < sizeof(ShardHeader))
      return;
    const size_t at = offsetof(ShardHeader, hash);
    const uint64_t hash = XXH3_64bits(shard.data(), at);
    std::memcpy(&shard[at], &hash, sizeof hash);
  }
};

TEST_F(HostileData, AHundredThousandChangesDoNothingButErrors) {
  const std::string lines = "{\"text\": \"some words\", \"prompt\": \"why\"}\n"
                            "{\"prompt\": \"\", \"text\": \"\\u00e9 \\ud83d\\ude00 end\"}\n",
                    text = "one document\n\nanother\nof two lines\n\n\n\nthe last";
  const std::filesystem::path set = shards("set", {{1, 2, 3}, {4}, {5, 6}}, {300, 9, 0}, 4);
  const struct {
    HostileKind kind;
    std::string bytes;
  } inputs[] = {{HostileKind::jsonLines, lines},
                {HostileKind::turns, lines},
                {HostileKind::text, text},
                {HostileKind::text, gzip(text)},
                {HostileKind::jsonLines, gzip(lines) + gzip(lines)},
                {HostileKind::text, zstd(text)},
                {HostileKind::turns, zstd(lines) + zstd(lines)},
                {HostileKind::manifest, read(set / kManifestName)},
                {HostileKind::shard, read(set / "shard-00000.tokens")},
                {HostileKind::shard, read(set / "shard-00001.tokens")}};
  for (const auto &input : inputs)
    EXPECT_TRUE(readHostile(input.kind, std::as_bytes(std::span(input.bytes))));
  Random random(7);
  constexpr int each = 10000;
  size_t refused = 0;
  for (const auto &input : inputs)
    for (int i = 0; i < each; ++i) {
      std::string bytes = changed(input.bytes, random);
      if (input.kind == HostileKind::shard && i % 2 == 0)
        correctHash(bytes);
      refused += readHostile(input.kind, std::as_bytes(std::span(bytes))) ? 0 : 1;
    }
  EXPECT_GT(refused, std::size(inputs) * each / 4);
  EXPECT_LT(refused, std::size(inputs) * each);
}

} // namespace
