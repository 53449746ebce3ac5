// Files, gzip by zlib, zstd by libzstd.
#include "runtime/data/ByteSource.h"

#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

using namespace hydra::data;
using hydra::support::fail;
namespace support = hydra::support;

namespace {

class FileSource : public ByteSource {
public:
  explicit FileSource(const std::filesystem::path &path) : file(path) {}
  size_t read(std::span<std::byte> out) override {
    const auto part = out.first(std::min<uint64_t>(out.size(), file.size() - at));
    if (!part.empty())
      file.read(at, part);
    at += part.size();
    return part.size();
  }

private:
  support::InputFile file;
  uint64_t at = 0;
};

/// What is read from a source and not used yet.
class Input {
public:
  explicit Input(std::unique_ptr<ByteSource> from) : source(std::move(from)), buffer(kBytes) {}

  /// Reads more if nothing is left; empty at the end.
  std::span<const std::byte> bytes() {
    if (begin == end) {
      begin = 0;
      end = source->read(buffer);
    }
    return std::span(buffer).subspan(begin, end - begin);
  }
  void use(size_t count) { begin += count; }

private:
  static constexpr size_t kBytes = size_t{64} << 10;
  std::unique_ptr<ByteSource> source;
  std::vector<std::byte> buffer;
  size_t begin = 0, end = 0;
};

/// The bytes as they are.
class PlainSource : public ByteSource {
public:
  explicit PlainSource(Input from) : input(std::move(from)) {}
  size_t read(std::span<std::byte> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const auto bytes = input.bytes();
      if (bytes.empty())
        break;
      const auto part = bytes.first(std::min(bytes.size(), out.size() - done));
      std::copy(part.begin(), part.end(), out.begin() + static_cast<ptrdiff_t>(done));
      input.use(part.size());
      done += part.size();
    }
    return done;
  }

private:
  Input input;
};

class GzipSource : public ByteSource {
public:
  explicit GzipSource(Input from) : input(std::move(from)) {
    constexpr int largestWindow = 15, gzipOnly = 16;
    if (inflateInit2(&stream, largestWindow + gzipOnly) != Z_OK)
      throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream); }

  size_t read(std::span<std::byte> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const auto bytes = input.bytes();
      if (bytes.empty()) {
        if (inside)
          fail("the gzip file is cut off");
        break;
      }
      if (!inside) { // one file behind another, or zeros that fill the last block of a tape
        const auto zeros =
            std::ranges::find_if(bytes, [](std::byte b) { return b != std::byte{}; });
        if (zeros != bytes.begin()) {
          input.use(static_cast<size_t>(zeros - bytes.begin()));
          continue;
        }
        inflateReset(&stream);
        inside = true;
      }
      // zlib takes what it does not change without const.
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<std::byte *>(bytes.data()));
      stream.avail_in = static_cast<uInt>(bytes.size());
      stream.next_out = reinterpret_cast<Bytef *>(&out[done]);
      stream.avail_out = static_cast<uInt>(std::min(out.size() - done, size_t{1} << 30));
      const uInt room = stream.avail_out;
      const int status = inflate(&stream, Z_NO_FLUSH);
      input.use(bytes.size() - stream.avail_in);
      done += room - stream.avail_out;
      if (status == Z_STREAM_END)
        inside = false;
      else if (status != Z_OK && status != Z_BUF_ERROR)
        fail("the gzip file is damaged{}{}", stream.msg ? ": " : "", stream.msg ? stream.msg : "");
    }
    return done;
  }

private:
  Input input;
  z_stream stream = {};
  bool inside = true; // of a file
};

class ZstdSource : public ByteSource {
public:
  explicit ZstdSource(Input from) : input(std::move(from)), stream(ZSTD_createDStream()) {
    if (!stream)
      throw std::bad_alloc();
    // As far back as any frame may look: 2 GiB, of which a small file takes a small part.
    ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax,
                           ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  }

  size_t read(std::span<std::byte> out) override {
    ZSTD_outBuffer to = {out.data(), out.size(), 0};
    while (to.pos < to.size) {
      const auto bytes = input.bytes();
      // What is unpacked may wait for room when all is read.
      if (bytes.empty() && !inside)
        break;
      ZSTD_inBuffer from = {bytes.data(), bytes.size(), 0};
      const size_t before = to.pos;
      const size_t status = ZSTD_decompressStream(stream.get(), &to, &from);
      if (ZSTD_isError(status))
        fail("the zstd file is damaged: {}", ZSTD_getErrorName(status));
      input.use(from.pos);
      inside = status != 0;
      if (bytes.empty() && to.pos == before && inside)
        fail("the zstd file is cut off");
    }
    return to.pos;
  }

private:
  struct Free {
    void operator()(ZSTD_DStream *s) const { ZSTD_freeDStream(s); }
  };
  Input input;
  std::unique_ptr<ZSTD_DStream, Free> stream;
  bool inside = true; // of a frame
};

bool beginsWith(std::span<const std::byte> bytes, std::initializer_list<unsigned char> magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

bool isGzip(std::span<const std::byte> begin) { return beginsWith(begin, {0x1f, 0x8b}); }

/// By the magic number of a frame, or of one to be skipped, which readers of others may use.
bool isZstd(std::span<const std::byte> begin) {
  const bool skippable = begin.size() >= 4 && (begin[0] & std::byte{0xf0}) == std::byte{0x50} &&
                         beginsWith(begin.subspan(1), {0x2a, 0x4d, 0x18});
  return skippable || beginsWith(begin, {0x28, 0xb5, 0x2f, 0xfd});
}

} // namespace

bool hydra::data::isPacked(std::span<const std::byte> begin) {
  return isGzip(begin) || isZstd(begin);
}

std::unique_ptr<ByteSource> hydra::data::openFile(const std::filesystem::path &path) {
  return std::make_unique<FileSource>(path);
}

std::unique_ptr<ByteSource> hydra::data::unpacked(std::unique_ptr<ByteSource> packed) {
  Input input(std::move(packed));
  const auto begin = input.bytes();
  if (isGzip(begin))
    return std::make_unique<GzipSource>(std::move(input));
  if (isZstd(begin))
    return std::make_unique<ZstdSource>(std::move(input));
  return std::make_unique<PlainSource>(std::move(input));
}
