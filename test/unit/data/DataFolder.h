// A folder for the files of a test, shards in it, and packed bytes.
#pragma once

#include "runtime/data/Manifest.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace hydra::data {

class DataFolder : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("hydra-data-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path write(const std::string &name, const std::string &content) const {
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  }

  static std::string read(const std::filesystem::path &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static std::string errorOf(const std::function<void()> &action) {
    try {
      action();
    } catch (const support::Error &error) {
      return error.what();
    }
    return "no error";
  }

  using Documents = std::vector<std::vector<int32_t>>;

  /// A folder of shards of `documents`, which end with `kind.end`, if that is an id.
  std::filesystem::path shards(const std::string &name, const Documents &documents,
                               const ShardKind &kind, uint64_t shardTokens) const {
    Manifest manifest;
    manifest.kind = kind;
    ShardSetWriter writer(folder / name, manifest, shardTokens);
    for (const std::vector<int32_t> &document : documents) {
      writer.write(document, false);
      if (kind.end >= 0)
        writer.write(std::array{static_cast<int32_t>(kind.end)}, false);
      writer.endDocument();
    }
    writer.commit();
    return folder / name;
  }

  std::filesystem::path folder;
};

inline std::string gzip(const std::string &text) {
  z_stream stream = {};
  constexpr int largestWindow = 15, gzipOnly = 16, memory = 8;
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, largestWindow + gzipOnly, memory,
               Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string zstd(const std::string &text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx *const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1); // as the program zstd does
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

} // namespace hydra::data
