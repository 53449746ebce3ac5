// Writing shards: the header last, when what it says is known.
#include "runtime/data/Shard.h"
#include "runtime/support/OutputFile.h"

#include <xxhash.h>

#include <cstddef>
#include <cstring>

using namespace hydra::data;
namespace support = hydra::support;

ShardWriter::ShardWriter(const support::OutputPath &path, const ShardKind &kind) : file(path) {
  head.magic = ShardHeader::kMagic;
  head.version = ShardHeader::kVersion;
  head.width = tokenWidth(kind.vocabulary);
  head.kind = kind;
  file.write(std::as_bytes(std::span(&head, 1)));
}

void ShardWriter::write(std::span<const int32_t> ids, bool prompt) {
  constexpr size_t enough = size_t{1} << 20;
  const size_t width = head.width, begin = packed.size();
  packed.resize(begin + ids.size() * width);
  for (size_t i = 0; i < ids.size(); ++i)
    std::memcpy(&packed[begin + i * width], &ids[i], width); // little-endian, as x86-64 is
  if (packed.size() >= enough)
    flush();
  if (prompt) {
    head.masked = 1;
    mask.resize((head.tokens + ids.size() + 7) / 8);
    for (uint64_t i = head.tokens; i < head.tokens + ids.size(); ++i)
      mask[i / 8] |= static_cast<uint8_t>(1u << i % 8);
  }
  head.tokens += ids.size();
}

void ShardWriter::flush() {
  hash.add(packed);
  file.write(packed);
  packed.clear();
}

uint64_t ShardWriter::append(std::span<const std::byte> bytes) {
  file.write(bytes);
  return XXH3_64bits(bytes.data(), bytes.size());
}

ShardHeader ShardWriter::commit() {
  flush();
  head.tokensHash = hash.value();
  const uint64_t size = sizeof head + head.tokens * head.width;
  const std::array<std::byte, 8> zeros = {};
  append(std::span(zeros).first((8 - size % 8) % 8));
  head.documents = ends.size();
  head.documentsHash = append(std::as_bytes(std::span(ends)));
  if (head.masked == 1)
    mask.resize((head.tokens + 7) / 8);
  head.maskHash = append(std::as_bytes(std::span(mask)));
  head.hash = XXH3_64bits(&head, offsetof(ShardHeader, hash));
  support::OutputFile whole(file.temporaryPath(),
                            (size + 7) / 8 * 8 + ends.size() * 8 + mask.size());
  whole.write(0, std::as_bytes(std::span(&head, 1)));
  whole.close();
  file.commit();
  return head;
}
