// Hashes of tensors from parts, and files that are written in places.
#include "runtime/support/BlockHash.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/InputFile.h"
#include "runtime/support/OutputFile.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <vector>

using namespace hydra::support;

namespace {

std::vector<std::byte> randomBytes(size_t count) {
  std::vector<std::byte> bytes(count);
  uint64_t state = count + 1;
  for (std::byte &byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

uint64_t byDefinition(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i * BlockHash::kBlock < bytes.size(); ++i) {
    const auto block = bytes.subspan(i * BlockHash::kBlock);
    sum += XXH3_64bits_withSeed(block.data(), std::min<size_t>(block.size(), BlockHash::kBlock), i);
  }
  return sum;
}

/// The part [begin, end) of the bytes, which come in pieces; then what its last block needs.
uint64_t sumOf(std::span<const std::byte> bytes, uint64_t begin, uint64_t end, uint64_t piece) {
  BlockHash hash(bytes.size(), begin);
  for (uint64_t at = begin; at < end; at += piece)
    hash.add(bytes.subspan(at, std::min(piece, end - at)));
  EXPECT_EQ(hash.position(), end);
  EXPECT_LE(end + hash.missing(), bytes.size());
  hash.add(bytes.subspan(end, hash.missing()));
  EXPECT_EQ(hash.missing(), 0u);
  return hash.sum();
}

} // namespace

TEST(BlockHash, OfPartsAddsUpToThatOfTheWhole) {
  constexpr uint64_t block = BlockHash::kBlock;
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, block - 1, block, block + 1, 5 * block, 5 * block + 12345}) {
    const std::vector<std::byte> bytes = randomBytes(size);
    const uint64_t expected = byDefinition(bytes);
    for (const uint64_t piece :
         {uint64_t{1000}, block / 2, block, 2 * block + 1, uint64_t{1} << 30}) {
      EXPECT_EQ(sumOf(bytes, 0, size, piece), expected) << size << " " << piece;
      for (const uint64_t parts : {2, 3, 7, 40}) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < parts; ++i)
          sum += sumOf(bytes, size * i / parts, size * (i + 1) / parts, piece);
        EXPECT_EQ(sum, expected) << size << " " << piece << " " << parts;
      }
    }
  }
}

TEST(BlockHash, SeesEveryByteAndTheOrderOfBlocks) {
  std::vector<std::byte> bytes = randomBytes(3 * BlockHash::kBlock + 5);
  const uint64_t before = byDefinition(bytes);
  for (const size_t at : {size_t{0}, BlockHash::kBlock - 1, bytes.size() - 1}) {
    bytes[at] ^= std::byte{16};
    EXPECT_NE(sumOf(bytes, 0, bytes.size(), 1 << 20), before);
    bytes[at] ^= std::byte{16};
  }
  std::swap_ranges(bytes.begin(), bytes.begin() + BlockHash::kBlock,
                   bytes.begin() + BlockHash::kBlock);
  EXPECT_NE(sumOf(bytes, 0, bytes.size(), 1 << 20), before);
}

TEST(OutputFile, IsWrittenInPlacesBySeveral) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("hydra-output-" + std::to_string(::getpid()));
  {
    AtomicFile whole(path);
    whole.resize(100);
    OutputFile a(whole.temporaryPath(), 100), b(whole.temporaryPath(), 100);
    b.write(60, randomBytes(40));
    a.write(0, randomBytes(10));
    a.close();
    b.close();
    whole.commit();
  }
  const std::vector<std::byte> found = InputFile(path).readAll();
  ASSERT_EQ(found.size(), 100u);
  EXPECT_TRUE(std::ranges::equal(std::span(found).first(10), randomBytes(10)));
  EXPECT_TRUE(std::ranges::equal(std::span(found).last(40), randomBytes(40)));
  EXPECT_TRUE(std::ranges::all_of(std::span(found).subspan(10, 50),
                                  [](std::byte x) { return x == std::byte{0}; }));
  const auto errorOf = [](const std::filesystem::path &name, uint64_t size) -> std::string {
    try {
      OutputFile(name, size);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(errorOf(path, 99), "cannot write " + path.string() + ": it has 100 bytes; expected 99");
  EXPECT_EQ(errorOf(path / "none", 99),
            "cannot write " + (path / "none").string() + ": failed to open it: Not a directory");
  std::filesystem::remove(path);
}
