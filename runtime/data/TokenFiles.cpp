// Reading tokens of any width.
#include "runtime/data/TokenFiles.h"

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

size_t widthOf(Format format) {
  return format == Format::bytes ? 1 : format == Format::uint16 ? 2 : 4;
}

} // namespace

struct TokenFiles::File {
  File(const std::filesystem::path &path, Format format, const text::Tokenizer *tokenizer)
      : input(path) {
    if (input.size() == 0)
      fail("{} is empty", input.name());
    width = widthOf(format);
    std::array<int32_t, 3> header = {};
    if ((tokenizer || format != Format::bytes) && input.size() >= kHeaderBytes) {
      input.read(0, std::as_writable_bytes(std::span(header)));
      for (const HeaderKind &kind : kHeaders) {
        if (kind.magic != header[0])
          continue;
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

  void read(uint64_t first, std::span<int32_t> out, int64_t vocabulary) const {
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
};

TokenFiles::TokenFiles(FilesOptions given) : options(std::move(given)) {
  for (const std::filesystem::path &path : options.files) {
    files.push_back(std::make_unique<File>(path, options.format, options.tokenizer));
    files.back()->start = total;
    total += files.back()->count;
  }
}

TokenFiles::~TokenFiles() = default;

void TokenFiles::read(uint64_t first, std::span<int32_t> out) const {
  auto file = std::upper_bound(files.begin(), files.end(), first,
                               [](uint64_t at, const auto &f) { return at < f->start; });
  for (--file; !out.empty(); ++file) {
    const uint64_t offset = first - (*file)->start;
    const size_t part = std::min<uint64_t>(out.size(), (*file)->count - offset);
    (*file)->read(offset, out.first(part), options.vocabulary);
    out = out.subspan(part);
    first += part;
  }
}

std::string TokenFiles::fingerprint() const {
  constexpr size_t part = size_t{1} << 16, parts = 16;
  XXH64_hash_t hash = 0;
  std::vector<std::byte> buffer;
  for (const auto &file : files) {
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
