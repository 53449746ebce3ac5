// Mapping files, and reading tokens of any width from them.
#include "runtime/data/TokenFiles.h"

#include "runtime/support/Error.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

using namespace hydra::data;
using hydra::support::errnoText;
using hydra::support::fail;

namespace {

/// llm.c's files begin with 256 integers: magic, version, number of tokens, zeros.
constexpr size_t kHeaderBytes = 1024;
struct HeaderKind {
  int32_t magic, version;
  size_t width;
};
constexpr std::array<HeaderKind, 2> kHeaders = {{{20240520, 1, 2}, {20240801, 7, 4}}};

size_t widthOf(Format format) {
  return format == Format::bytes ? 1 : format == Format::uint16 ? 2 : 4;
}

} // namespace

struct TokenFiles::File {
  File(const std::filesystem::path &path, Format format) : name(path.string()) {
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      fail("cannot read {}: {}", name, errnoText(errno));
    try {
      map();
      readHeader(format);
    } catch (...) {
      close();
      throw;
    }
  }
  ~File() { close(); }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  void map() {
    struct stat status;
    if (::fstat(descriptor, &status) != 0)
      fail("cannot read {}: {}", name, errnoText(errno));
    if (!S_ISREG(status.st_mode))
      fail("cannot read {}: it is no regular file", name);
    if (status.st_size == 0)
      fail("{} is empty", name);
    size = static_cast<size_t>(status.st_size);
    void *start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (start == MAP_FAILED)
      fail("cannot map {}: {}", name, errnoText(errno));
    bytes = static_cast<const std::byte *>(start);
  }

  void readHeader(Format format) {
    width = widthOf(format);
    std::array<int32_t, 3> header = {};
    if (format != Format::bytes && size >= kHeaderBytes) {
      std::memcpy(header.data(), bytes, sizeof header);
      for (const HeaderKind &kind : kHeaders) {
        if (kind.magic != header[0])
          continue;
        if (kind.version != header[1])
          fail("{}: version {} of the token file; expected {}", name, header[1], kind.version);
        width = kind.width;
        begin = kHeaderBytes;
      }
    }
    if ((size - begin) % width != 0)
      fail("{}: {} bytes of tokens are no multiple of their width {}; is --tokenizer right?", name,
           size - begin, width);
    count = (size - begin) / width;
    if (begin > 0 && static_cast<int64_t>(count) != header[2])
      fail("{}: has {} tokens; its header says {}", name, count, header[2]);
  }

  void close() {
    if (bytes)
      ::munmap(const_cast<std::byte *>(bytes), size);
    ::close(descriptor);
  }

  /// Reading past the end of a file that was cut would be SIGBUS.
  void checkSize() const {
    struct stat status;
    if (::fstat(descriptor, &status) != 0 || static_cast<size_t>(status.st_size) < size)
      fail("{}: has become shorter than its {} bytes while in use", name, size);
  }

  void read(uint64_t first, std::span<int32_t> out, int64_t vocabulary) const {
    checkSize();
    const std::byte *at = bytes + begin + first * width;
    for (size_t i = 0; i < out.size(); ++i, at += width) {
      uint32_t id = 0;
      std::memcpy(&id, at, width); // little-endian, as x86-64 is
      if (id >= static_cast<uint64_t>(vocabulary))
        fail("{}: token {} is {}; the model knows ids in [0, {})", name, first + i, id, vocabulary);
      out[i] = static_cast<int32_t>(id);
    }
  }

  std::string name;
  int descriptor = -1;
  const std::byte *bytes = nullptr;
  size_t size = 0, width = 1, begin = 0;
  uint64_t count = 0, start = 0; // tokens, and those of the files before
};

TokenFiles::TokenFiles(FilesOptions given) : options(std::move(given)) {
  for (const std::filesystem::path &path : options.files) {
    files.push_back(std::make_unique<File>(path, options.format));
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
  for (const auto &file : files) {
    file->checkSize();
    hash = XXH3_64bits_withSeed(&file->size, sizeof file->size, hash);
    for (size_t i = 0; i < parts; ++i) {
      const size_t begin = (file->size - std::min(part, file->size)) / (parts - 1) * i;
      hash = XXH3_64bits_withSeed(file->bytes + begin, std::min(part, file->size - begin), hash);
    }
  }
  return fmt::format("{} tokens, {:016x}", total, hash);
}
