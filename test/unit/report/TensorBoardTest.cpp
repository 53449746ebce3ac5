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

/// A field of a message: its number, and its content by its wire type.
struct Field {
  uint32_t number = 0;
  double fixed = 0; // of 64 and of 32 bits
  uint64_t varint = 0;
  std::string_view bytes = {}; // of what has a length
};

std::vector<Field> fieldsOf(std::string_view message) {
  std::vector<Field> fields;
  for (Message m{message}; !m.rest.empty();) {
    const uint64_t key = m.varint();
    Field field;
    field.number = static_cast<uint32_t>(key >> 3);
    if ((key & 7) == 0)
      field.varint = m.varint();
    else if ((key & 7) == 1)
      field.fixed = m.fixed<double>();
    else if ((key & 7) == 5)
      field.fixed = m.fixed<float>();
    else
      field.bytes = m.bytes();
    fields.push_back(field);
  }
  return fields;
}

/// The field of that number, which is there once.
Field only(std::string_view message, uint32_t number) {
  std::vector<Field> fields = fieldsOf(message);
  std::erase_if(fields, [&](const Field &field) { return field.number != number; });
  EXPECT_EQ(fields.size(), 1u) << number;
  return fields.empty() ? Field() : fields[0];
}

std::vector<double> doublesOf(std::string_view packed) {
  std::vector<double> values;
  for (Message m{packed}; !m.rest.empty();)
    values.push_back(m.fixed<double>());
  return values;
}

/// The value of the summary of an event, of which the step is expected.
std::string_view valueOf(std::string_view event, uint64_t step) {
  EXPECT_EQ(only(event, 2).varint, step);
  return only(only(event, 5).bytes, 1).bytes;
}

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

std::filesystem::path temporaryFolder() {
  return std::filesystem::temp_directory_path() / ("hydra-events-" + std::to_string(::getpid()));
}

} // namespace

TEST(TensorBoard, ChecksumsOfTheStandard) { // RFC 3720, B.4
  EXPECT_EQ(report::crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(report::crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(report::crc32c("123456789"), 0xE3069283u);
}

TEST(TensorBoard, ScalarsComeBack) {
  const auto folder = temporaryFolder();
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

TEST(TensorBoard, HistogramsComeBack) {
  const auto folder = temporaryFolder();
  report::TensorBoardWriter writer(folder);
  writer.histogram("train/depths/0", 7,
                   {.limits = {0.5, 1.5, 2.5},
                    .counts = {4, 0, 1},
                    .min = 0,
                    .max = 2,
                    .count = 5,
                    .sum = 2,
                    .sumOfSquares = 4});
  const std::vector<std::string> events = records(writer.file());
  ASSERT_EQ(events.size(), 2u); // the first one has the version
  const std::string_view value = valueOf(events[1], 7);
  EXPECT_EQ(only(value, 1).bytes, "train/depths/0");
  const std::string_view histogram = only(value, 5).bytes;
  EXPECT_EQ(only(histogram, 1).fixed, 0.0); // min
  EXPECT_EQ(only(histogram, 2).fixed, 2.0); // max
  EXPECT_EQ(only(histogram, 3).fixed, 5.0); // num
  EXPECT_EQ(only(histogram, 4).fixed, 2.0); // sum
  EXPECT_EQ(only(histogram, 5).fixed, 4.0); // sum_squares
  EXPECT_EQ(doublesOf(only(histogram, 6).bytes), (std::vector{0.5, 1.5, 2.5}));
  EXPECT_EQ(doublesOf(only(histogram, 7).bytes), (std::vector{4.0, 0.0, 1.0}));
  std::filesystem::remove_all(folder);
}

TEST(TensorBoard, TextsComeBack) {
  const auto folder = temporaryFolder();
  report::TensorBoardWriter writer(folder);
  const std::string text = "Thou \xc3\xa9 " + std::string(300, 'x'); // a length of two bytes
  writer.text("samples/0", 20, text);
  const std::vector<std::string> events = records(writer.file());
  ASSERT_EQ(events.size(), 2u);
  const std::string_view value = valueOf(events[1], 20);
  EXPECT_EQ(only(value, 1).bytes, "samples/0");
  const std::string_view tensor = only(value, 8).bytes;
  EXPECT_EQ(only(tensor, 1).varint, 7u); // DT_STRING
  EXPECT_EQ(only(only(only(tensor, 2).bytes, 2).bytes, 1).varint, 1u);
  EXPECT_EQ(only(tensor, 8).bytes, text);
  const std::string_view metadata = only(value, 9).bytes;
  EXPECT_EQ(only(only(metadata, 1).bytes, 1).bytes, "text");
  EXPECT_EQ(only(metadata, 4).varint, 2u); // DATA_CLASS_TENSOR
  std::filesystem::remove_all(folder);
}

TEST(TensorBoard, APlaceThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(report::TensorBoardWriter("/dev/null/events"), support::Error);
}
