// Reading tokens of any width.
#include "runtime/data/TokenFiles.h"

#include "runtime/data/ByteSource.h"
#include "runtime/data/Manifest.h"
#include "runtime/data/TokenFileHeader.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

using namespace hydra::data;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

/// Whether the begin of a file holds no byte that texts do not have. Of tokens of several bytes,
/// whose upper ones are small, some have one; a few tokens may have none.
bool looksLikeText(const support::InputFile &input) {
  constexpr uint64_t few = 512, most = uint64_t{64} << 10;
  if (input.size() < few)
    return false;
  std::vector<std::byte> begin(std::min(input.size(), most));
  input.read(0, begin);
  return std::ranges::none_of(begin, [](std::byte one) {
    const auto c = std::to_integer<unsigned char>(one);
    return c < '\t' || (c > '\r' && c < ' ') || c == 0x7f || c == 0xff;
  });
}

bool isPackedText(const support::InputFile &input) {
  std::array<std::byte, 4> begin{};
  const size_t size = std::min<uint64_t>(input.size(), begin.size());
  input.read(0, std::span(begin).first(size));
  return isPacked(std::span(begin).first(size));
}

size_t widthOf(Format format) {
  return format == Format::bytes ? 1 : format == Format::uint16 ? 2 : 4;
}

} // namespace

struct TokenFiles::File {
  File(const std::filesystem::path &path, Format format, bool assumed,
       const text::Tokenizer *tokenizer)
      : input(path) {
    if (input.size() == 0)
      fail("{} is empty", input.name());
    if (Shard::matches(input)) {
      shard = std::make_unique<Shard>(input);
      count = shard->tokens();
      return;
    }
    width = widthOf(format);
    std::array<int32_t, 3> header = {};
    if (input.size() >= sizeof(header)) {
      input.read(0, std::as_writable_bytes(std::span(header)));
      for (const HeaderKind &kind : kHeaders) {
        if (kind.magic != header[0])
          continue;
        if (input.size() < kHeaderBytes)
          fail("{}: ends inside of its header, after {} bytes", input.name(), input.size());
        if (kind.version != header[1])
          fail("{}: version {} of the token file; expected {}", input.name(), header[1],
               kind.version);
        width = kind.width;
        begin = kHeaderBytes;
      }
    }
    if (tokenizer && begin == 0) {
      encode(*tokenizer);
      return;
    }
    const uint64_t size = input.size() - begin;
    if (size % width != 0)
      fail("{}: {} bytes of tokens are no multiple of their width {}; is --tokenizer right?",
           input.name(), size, width);
    if (assumed && begin == 0 && width > 1 && looksLikeText(input))
      fail("{}: holds text; expected tokens of {} bytes, or --tokenizer, which says how to read it",
           input.name(), width);
    if (assumed && width == 1 && isPackedText(input))
      fail("{}: is packed; hydra-data build unpacks it, --tokenizer=bytes takes it as it is",
           input.name());
    count = size / width;
    if (begin > 0 && static_cast<int64_t>(count) != header[2])
      fail("{}: has {} tokens; its header says {}", input.name(), count, header[2]);
  }

  void encode(const text::Tokenizer &tokenizer) {
    const std::vector<std::byte> bytes = input.readAll();
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    try {
      encoded = tokenizer.encode(text, text::Around::nothing);
    } catch (const support::Error &error) {
      fail("{}: {}", input.name(), error.what());
    }
    count = encoded.size();
    if (count == 0)
      fail("{}: its text has no tokens", input.name());
  }

  void readLabels(uint64_t first, std::span<int32_t> out, int64_t vocabulary) const {
    if (shard)
      shard->readLabels(first, out, static_cast<uint64_t>(vocabulary));
    else
      read(first, out, vocabulary);
  }

  void read(uint64_t first, std::span<int32_t> out, int64_t vocabulary) const {
    if (shard)
      return shard->read(first, out, static_cast<uint64_t>(vocabulary));
    if (!encoded.empty()) {
      std::copy_n(encoded.begin() + static_cast<ptrdiff_t>(first), out.size(), out.begin());
      return;
    }
    std::array<std::byte, 16384> buffer;
    while (!out.empty()) {
      const size_t part = std::min(out.size(), buffer.size() / width);
      input.read(begin + first * width, std::span(buffer).first(part * width));
      for (size_t i = 0; i < part; ++i) {
        uint32_t id = 0;
        std::memcpy(&id, &buffer[i * width], width); // little-endian, as x86-64 is
        if (id >= static_cast<uint64_t>(vocabulary))
          fail("{}: token {} is {}; the model knows ids in [0, {})", input.name(), first + i, id,
               vocabulary);
        out[i] = static_cast<int32_t>(id);
      }
      out = out.subspan(part);
      first += part;
    }
  }

  support::InputFile input;
  size_t width = 1, begin = 0;
  uint64_t count = 0, start = 0; // tokens, and those of the files before
  std::vector<int32_t> encoded;  // text that the tokenizer has encoded
  std::unique_ptr<Shard> shard;
};

namespace {

/// The manifest that a path stands for; empty: none.
std::filesystem::path manifestOf(const std::filesystem::path &path) {
  std::error_code ignored;
  const std::filesystem::path inside = path / kManifestName;
  if (std::filesystem::is_directory(path, ignored) && std::filesystem::exists(inside, ignored))
    return inside;
  return path.filename() == kManifestName ? path : std::filesystem::path();
}

} // namespace

uint64_t hydra::data::hashOfTokenizer(const std::filesystem::path &path) {
  const support::InputFile file(text::tokenizerFile(path));
  const std::vector<std::byte> bytes = file.readAll();
  return XXH3_64bits(bytes.data(), bytes.size());
}

TokenFiles::TokenFiles(FilesOptions given) : options(std::move(given)) {
  for (const std::filesystem::path &path : options.files) {
    if (const std::filesystem::path manifest = manifestOf(path); !manifest.empty())
      addManifest(manifest);
    else
      addFile(path);
  }
}

void TokenFiles::addManifest(const std::filesystem::path &path) {
  const Manifest manifest = readManifest(path);
  for (const Manifest::Entry &entry : manifest.shards) {
    addFile(path.parent_path() / entry.file);
    const File &file = *files.back();
    if (!file.shard)
      fail("{}: is no shard", file.input.name());
    checkEntry(manifest, entry, *file.shard, file.input.name());
  }
}

void TokenFiles::addFile(const std::filesystem::path &path) {
  files.push_back(std::make_unique<File>(path, options.format, options.assumed, options.tokenizer));
  File &file = *files.back();
  file.start = total;
  total += file.count;
  if (!file.shard) {
    allShards = false;
    return;
  }
  const ShardKind &kind = file.shard->header().kind;
  if (kind.vocabulary > static_cast<uint64_t>(options.vocabulary))
    fail("{}: its tokenizer has token ids up to {}; the model knows ids in [0, {})",
         file.input.name(), kind.vocabulary - 1, options.vocabulary);
  if (options.tokenizerHash != 0 && kind.tokenizer != options.tokenizerHash)
    fail("{}: was made by another tokenizer than that of --tokenizer: hash {:016x}, not {:016x}",
         file.input.name(), kind.tokenizer, options.tokenizerHash);
  if (const auto other = std::ranges::find_if(
          files, [&](const auto &f) { return f->shard && f->shard->header().kind != kind; });
      other != files.end())
    fail("{} and {} are of different tokenizers, or their documents end with different tokens",
         (*other)->input.name(), file.input.name());
  shardKind = kind;
  anyMasked |= file.shard->header().masked == 1;
}

TokenFiles::~TokenFiles() = default;

template <typename Read>
void TokenFiles::eachPart(uint64_t first, std::span<int32_t> out, Read read) const {
  auto file = std::upper_bound(files.begin(), files.end(), first,
                               [](uint64_t at, const auto &f) { return at < f->start; });
  for (--file; !out.empty(); ++file) {
    const uint64_t offset = first - (*file)->start;
    const size_t part = std::min<uint64_t>(out.size(), (*file)->count - offset);
    read(**file, offset, out.first(part));
    out = out.subspan(part);
    first += part;
  }
}

void TokenFiles::read(uint64_t first, std::span<int32_t> out) const {
  eachPart(first, out, [this](const File &file, uint64_t at, std::span<int32_t> part) {
    file.read(at, part, options.vocabulary);
  });
}

void TokenFiles::readLabels(uint64_t first, std::span<int32_t> out) const {
  eachPart(first, out, [this](const File &file, uint64_t at, std::span<int32_t> part) {
    file.readLabels(at, part, options.vocabulary);
  });
}

std::vector<uint64_t> TokenFiles::documentEnds() const {
  std::vector<uint64_t> all;
  for (const auto &file : files)
    for (const uint64_t end : file->shard->ends())
      all.push_back(file->start + end);
  return all;
}

std::string TokenFiles::fingerprint() const {
  constexpr size_t part = size_t{1} << 16, parts = 16;
  XXH64_hash_t hash = 0;
  std::vector<std::byte> buffer;
  for (const auto &file : files) {
    if (file->shard) {
      const uint64_t content = file->shard->header().hash;
      hash = XXH3_64bits_withSeed(&content, sizeof content, hash);
      continue;
    }
    if (!file->encoded.empty()) {
      hash =
          XXH3_64bits_withSeed(file->encoded.data(), file->encoded.size() * sizeof(int32_t), hash);
      continue;
    }
    const size_t size = file->input.size();
    hash = XXH3_64bits_withSeed(&size, sizeof size, hash);
    for (size_t i = 0; i < parts; ++i) {
      const size_t begin = (size - std::min(part, size)) / (parts - 1) * i;
      buffer.resize(std::min(part, size - begin));
      file->input.read(begin, buffer);
      hash = XXH3_64bits_withSeed(buffer.data(), buffer.size(), hash);
    }
  }
  return fmt::format("{} tokens, {:016x}", total, hash);
}
