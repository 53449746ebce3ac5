// Reading shards, and what is wrong with them.
#include "runtime/data/Shard.h"

#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace hydra::data;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

constexpr uint64_t kHeader = sizeof(ShardHeader), kAlignment = 8;
constexpr size_t kBuffer = 16384;

} // namespace

uint32_t hydra::data::tokenWidth(uint64_t vocabulary) {
  constexpr uint64_t bytes = 256, shorts = 65536;
  return vocabulary <= bytes ? 1 : vocabulary <= shorts ? 2 : 4;
}

bool Shard::matches(const support::InputFile &file) {
  std::array<char, 8> magic = {};
  if (file.size() < kHeader)
    return false;
  file.read(0, std::as_writable_bytes(std::span(magic)));
  return magic == ShardHeader::kMagic;
}

Shard::Shard(const support::InputFile &input) : file(input) {
  if (file.size() < kHeader)
    fail("{}: has {} bytes; the header of a shard has {}", file.name(), file.size(), kHeader);
  file.read(0, std::as_writable_bytes(std::span(&head, 1)));
  if (head.magic != ShardHeader::kMagic)
    fail("{}: is no shard", file.name());
  if (head.version != ShardHeader::kVersion)
    fail("{}: version {} of shards; expected {}", file.name(), head.version, ShardHeader::kVersion);
  if (head.hash != XXH3_64bits(&head, offsetof(ShardHeader, hash)))
    fail("{}: the header is damaged: its hash is not that of its bytes", file.name());
  constexpr uint64_t mostIds = uint64_t{1} << 31;
  if (head.kind.vocabulary > mostIds || head.width != tokenWidth(head.kind.vocabulary))
    fail("{}: tokens of {} bytes for a vocabulary of {}", file.name(), head.width,
         head.kind.vocabulary);
  if (head.kind.end < -1 || head.kind.end >= static_cast<int64_t>(head.kind.vocabulary))
    fail("{}: documents end with token {}; ids are in [0, {})", file.name(), head.kind.end,
         head.kind.vocabulary);
  // No sum below overflows.
  if (head.tokens == 0 || head.tokens > file.size() || head.documents == 0 ||
      head.documents > head.tokens || head.masked > 1)
    fail("{}: the header says {} tokens in {} documents, of which there cannot be as many in {} "
         "bytes",
         file.name(), head.tokens, head.documents, file.size());
  endsBegin = support::roundUp(kHeader + head.tokens * head.width, kAlignment);
  maskBegin = endsBegin + head.documents * sizeof(uint64_t);
  const uint64_t size = maskBegin + (head.masked == 1 ? (head.tokens + 7) / 8 : 0);
  if (size != file.size())
    fail("{}: has {} bytes; its header says {}", file.name(), file.size(), size);
}

void Shard::read(uint64_t first, std::span<int32_t> out, uint64_t limit) const {
  std::array<std::byte, kBuffer> buffer;
  const size_t width = head.width;
  limit = std::min(limit, head.kind.vocabulary);
  while (!out.empty()) {
    const size_t part = std::min(out.size(), buffer.size() / width);
    file.read(kHeader + first * width, std::span(buffer).first(part * width));
    const auto take = [&]<typename T>(T id) {
      for (size_t i = 0; i < part; ++i) {
        std::memcpy(&id, &buffer[i * sizeof id], sizeof id);
        if (id >= limit)
          fail("{}: token {} is {}; expected an id in [0, {})", file.name(), first + i, id, limit);
        out[i] = static_cast<int32_t>(id);
      }
    };
    if (width == 1)
      take(uint8_t{});
    else if (width == 2)
      take(uint16_t{});
    else
      take(uint32_t{});
    out = out.subspan(part);
    first += part;
  }
}

void Shard::readLabels(uint64_t first, std::span<int32_t> out, uint64_t limit) const {
  read(first, out, limit);
  std::array<uint8_t, kBuffer> bits;
  while (head.masked == 1 && !out.empty()) {
    const uint64_t skipped = first % 8;
    const size_t part = std::min<uint64_t>(out.size(), bits.size() * 8 - skipped);
    file.read(maskBegin + first / 8,
              std::as_writable_bytes(std::span(bits).first((skipped + part + 7) / 8)));
    for (size_t i = 0; i < part; ++i)
      if (bits[(skipped + i) / 8] >> (skipped + i) % 8 & 1)
        out[i] = kIgnoredLabel;
    out = out.subspan(part);
    first += part;
  }
}

std::vector<uint64_t> Shard::ends() const {
  std::vector<uint64_t> ends(head.documents);
  file.read(endsBegin, std::as_writable_bytes(std::span(ends)));
  uint64_t before = 0;
  for (const uint64_t end : ends) {
    if (end <= before || end > head.tokens)
      fail("{}: document {} ends behind token {}, the one before behind {}, and there are {}",
           file.name(), &end - ends.data(), end, before, head.tokens);
    before = end;
  }
  if (before != head.tokens)
    fail("{}: the last document ends behind token {}, and there are {}", file.name(), before,
         head.tokens);
  return ends;
}

uint64_t Shard::hashOf(uint64_t begin, uint64_t size) const {
  support::StreamHash hash;
  std::vector<std::byte> buffer(size_t{1} << 20);
  while (size > 0) {
    const auto part = std::span(buffer).first(std::min<uint64_t>(buffer.size(), size));
    file.read(begin, part);
    hash.add(part);
    begin += part.size();
    size -= part.size();
  }
  return hash.value();
}

void Shard::verify() const {
  const auto check = [&](const char *what, uint64_t begin, uint64_t size, uint64_t expected) {
    if (const uint64_t found = hashOf(begin, size); found != expected)
      fail("{}: {} damaged: the checksum is {:016x}, the header says {:016x}", file.name(), what,
           found, expected);
  };
  check("the tokens are", kHeader, head.tokens * head.width, head.tokensHash);
  check("the table of documents is", endsBegin, maskBegin - endsBegin, head.documentsHash);
  check("the mask is", maskBegin, file.size() - maskBegin, head.maskHash);
  std::vector<int32_t> ids(size_t{1} << 16);
  for (uint64_t first = 0; first < head.tokens; first += ids.size())
    read(first, std::span(ids).first(std::min<uint64_t>(ids.size(), head.tokens - first)),
         head.kind.vocabulary);
  ends();
}
