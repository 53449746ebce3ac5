// Event files, read back by a decoder of their own.
#include "runtime/report/TensorBoard.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

using namespace hydra;

namespace {

/// Reads fields of a protocol buffers message.
struct Message {
  std::string_view rest;

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(rest[0]);
      rest.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80)
        return value;
    }
  }
  template <typename T> T fixed() {
    T value;
    std::memcpy(&value, rest.data(), sizeof value);
    rest.remove_prefix(sizeof value);
    return value;
  }
  std::string_view bytes() {
    const size_t size = varint();
    const std::string_view text = rest.substr(0, size);
    rest.remove_prefix(size);
    return text;
  }
};

uint32_t unmasked(uint32_t crc) {
  const uint32_t rotated = crc - 0xA282EAD8u;
  return rotated >> 17 | rotated << 15;
}

std::vector<std::string> records(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::string> found;
  for (Message m{content}; !m.rest.empty();) {
    const std::string_view length = m.rest.substr(0, 8);
    const auto size = m.fixed<uint64_t>();
    EXPECT_EQ(unmasked(m.fixed<uint32_t>()), report::crc32c(length));
    found.emplace_back(m.rest.substr(0, size));
    m.rest.remove_prefix(size);
    EXPECT_EQ(unmasked(m.fixed<uint32_t>()), report::crc32c(found.back()));
  }
  return found;
}

} // namespace

TEST(TensorBoard, ChecksumsOfTheStandard) { // RFC 3720, B.4
  EXPECT_EQ(report::crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(report::crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(report::crc32c("123456789"), 0xE3069283u);
}

TEST(TensorBoard, ScalarsComeBack) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("hydra-events-" + std::to_string(::getpid()));
  report::TensorBoardWriter writer(folder / "a");
  report::TensorBoardWriter other(folder / "a"); // a second run at the same time
  writer.scalar("train/loss", 300, 2.5);
  EXPECT_NE(writer.file(), other.file());

  const std::vector<std::string> events = records(writer.file());
  ASSERT_EQ(events.size(), 2u);
  Message version{events[0]};
  EXPECT_EQ(version.varint(), 1u << 3 | 1);
  EXPECT_GT(version.fixed<double>(), 1.7e9); // seconds since 1970
  EXPECT_EQ(version.varint(), 3u << 3 | 2);
  EXPECT_EQ(version.bytes(), "brain.Event:2");
  EXPECT_TRUE(version.rest.empty());

  Message event{events[1]};
  EXPECT_EQ(event.varint(), 1u << 3 | 1);
  event.fixed<double>();
  EXPECT_EQ(event.varint(), 2u << 3 | 0);
  EXPECT_EQ(event.varint(), 300u);
  EXPECT_EQ(event.varint(), 5u << 3 | 2);
  Message summary{event.bytes()};
  EXPECT_EQ(summary.varint(), 1u << 3 | 2);
  Message value{summary.bytes()};
  EXPECT_EQ(value.varint(), 1u << 3 | 2);
  EXPECT_EQ(value.bytes(), "train/loss");
  EXPECT_EQ(value.varint(), 2u << 3 | 5);
  EXPECT_EQ(value.fixed<float>(), 2.5f);
  EXPECT_TRUE(value.rest.empty() && summary.rest.empty() && event.rest.empty());
  std::filesystem::remove_all(folder);
}

TEST(TensorBoard, APlaceThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(report::TensorBoardWriter("/dev/null/events"), support::Error);
}
