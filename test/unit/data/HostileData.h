// Bytes of whatever kind, read as data: nothing but one-line errors may come of it.
#pragma once

#include "runtime/data/ByteSource.h"
#include "runtime/data/Documents.h"
#include "runtime/data/Manifest.h"
#include "runtime/support/Error.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

namespace hydra::data {

enum class HostileKind { text, jsonLines, turns, manifest, shard };
inline constexpr int kHostileKinds = 5;

/// Bytes in memory, which must outlive the source.
class MemorySource : public ByteSource {
public:
  explicit MemorySource(std::span<const std::byte> bytes) : rest(bytes) {}
  size_t read(std::span<std::byte> out) override {
    const auto part = rest.first(std::min(out.size(), rest.size()));
    std::copy(part.begin(), part.end(), out.begin());
    rest = rest.subspan(part.size());
    return part.size();
  }

private:
  std::span<const std::byte> rest;
};

inline void readDocuments(std::span<const std::byte> bytes, const TextFormat &format) {
  const auto tokenizer = text::makeByteTokenizer();
  const auto encoder = tokenizer->encoder();
  ChunkReader reader(unpacked(std::make_unique<MemorySource>(bytes)), "input", format, *tokenizer);
  Chunk chunk;
  constexpr size_t enough = size_t{64} << 20; // few bytes unpack to very many
  for (size_t total = 0; total < enough && reader.next(chunk); total += chunk.text.size()) {
    EncodedChunk encoded;
    encodeChunk(chunk, format, *encoder, encoded);
    size_t begin = 0;
    for (const EncodedChunk::Part &part : encoded.parts) {
      if (part.end < begin || part.end > encoded.ids.size())
        std::abort();
      begin = part.end;
    }
    if (begin != encoded.ids.size())
      std::abort();
  }
}

inline void readShard(std::span<const std::byte> bytes) {
  const int descriptor = ::memfd_create("shard", MFD_CLOEXEC);
  if (descriptor < 0 ||
      ::write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  struct Closer {
    ~Closer() { ::close(descriptor); }
    int descriptor;
  } const closer{descriptor};
  const support::InputFile file("/proc/self/fd/" + std::to_string(descriptor));
  const Shard shard(file);
  std::vector<int32_t> ids(shard.tokens());
  try {
    shard.ends();
    shard.readLabels(0, ids, shard.header().kind.vocabulary);
  } catch (const support::Error &) { // and what is wrong beside?
  }
  shard.verify();
}

/// Whether the bytes could be read. Aborts for what must not happen.
inline bool readHostile(HostileKind kind, std::span<const std::byte> bytes) {
  try {
    switch (kind) {
    case HostileKind::text:
      readDocuments(bytes, {.separators = {"\n\n", "\n\r\n"}});
      break;
    case HostileKind::jsonLines:
      readDocuments(bytes, {.jsonLines = true});
      break;
    case HostileKind::turns:
      readDocuments(
          bytes, {.jsonLines = true, .prompt = "prompt", .response = "text", .leaveOutBad = true});
      break;
    case HostileKind::manifest: {
      const Manifest manifest =
          parseManifest({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, "input");
      if (manifest.tokens() != parseManifest(manifestText(manifest), "again").tokens())
        std::abort();
      break;
    }
    case HostileKind::shard:
      readShard(bytes);
      break;
    }
    return true;
  } catch (const support::Error &error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos)
      std::abort();
    return false;
  }
}

} // namespace hydra::data
