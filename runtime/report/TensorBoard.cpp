// Records and protocol buffers by hand.
#include "runtime/report/TensorBoard.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <span>

using namespace hydra::report;
using hydra::support::errnoText;
using hydra::support::fail;

namespace {

constexpr std::array<uint32_t, 256> makeCrcTable() {
  constexpr uint32_t polynomial = 0x82F63B78; // Castagnoli, reflected
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    table[i] = crc;
  }
  return table;
}

/// As records hold checksums: a checksum of bytes that hold their own would be a constant.
uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8u; }

template <typename T> void appendRaw(std::string &out, T value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  out.append(bytes.data(), bytes.size());
}

enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

void appendVarint(std::string &out, uint64_t value) {
  constexpr uint64_t more = 0x80;
  for (; value >= more; value >>= 7)
    out += static_cast<char>(value | more);
  out += static_cast<char>(value);
}

void appendKey(std::string &out, uint32_t field, Wire wire) {
  appendVarint(out, field << 3 | wire);
}

void appendText(std::string &out, uint32_t field, std::string_view text) {
  appendKey(out, field, kLength);
  appendVarint(out, text.size());
  out += text;
}

void appendDouble(std::string &out, uint32_t field, double value) {
  appendKey(out, field, kFixed64);
  appendRaw(out, value);
}

/// A repeated field, packed.
void appendDoubles(std::string &out, uint32_t field, std::span<const double> values) {
  appendKey(out, field, kLength);
  appendVarint(out, values.size() * sizeof(double));
  for (const double value : values)
    appendRaw(out, value);
}

/// A Summary.Value with its tag, without content.
std::string newValue(std::string_view tag) {
  std::string value;
  appendText(value, 1, tag);
  return value;
}

/// An event with its wall time, without content.
std::string newEvent() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  appendKey(event, 1, kFixed64); // wall_time
  appendRaw(event, now.count());
  return event;
}

} // namespace

uint32_t hydra::report::crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = makeCrcTable();
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path &directory) {
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  if (code)
    fail("cannot create the directory {}: {}", hydra::support::shownPath(directory),
         code.message());
  std::array<char, 256> host = {};
  if (::gethostname(host.data(), host.size() - 1) != 0)
    host = {"localhost"};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const mode_t readWriteForAll = 0666; // less the umask
  for (int attempt = 0; descriptor < 0; ++attempt) {
    path = directory / fmt::format("events.out.tfevents.{}.{}.{}.{}", seconds.count(), host.data(),
                                   ::getpid(), attempt);
    descriptor =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, readWriteForAll);
    if (descriptor < 0 && errno != EEXIST)
      fail("cannot write {}: {}", hydra::support::shownPath(path), errnoText(errno));
  }
}

TensorBoardWriter::~TensorBoardWriter() { ::close(descriptor); }

void TensorBoardWriter::writeRecord(const std::string &event) {
  std::string record;
  appendRaw(record, uint64_t{event.size()});
  appendRaw(record, masked(crc32c(record)));
  record += event;
  appendRaw(record, masked(crc32c(event)));
  const ssize_t written = ::write(descriptor, record.data(), record.size());
  if (written != static_cast<ssize_t>(record.size()))
    fail("cannot write {}: {}", hydra::support::shownPath(path),
         errnoText(written < 0 ? errno : ENOSPC));
}

void TensorBoardWriter::write(int64_t step, std::string_view value) {
  if (!begun) {
    std::string event = newEvent();
    appendText(event, 3, "brain.Event:2"); // file_version
    writeRecord(event);
    begun = true;
  }
  std::string summary;
  appendText(summary, 1, value);
  std::string event = newEvent();
  appendKey(event, 2, kVarint); // step
  appendVarint(event, static_cast<uint64_t>(step));
  appendText(event, 5, summary);
  writeRecord(event);
}

void TensorBoardWriter::scalar(std::string_view tag, int64_t step, double number) {
  std::string value = newValue(tag);
  appendKey(value, 2, kFixed32); // simple_value
  appendRaw(value, static_cast<float>(number));
  write(step, value);
}

void TensorBoardWriter::histogram(std::string_view tag, int64_t step, const Histogram &histogram) {
  std::string proto; // HistogramProto
  appendDouble(proto, 1, histogram.min);
  appendDouble(proto, 2, histogram.max);
  appendDouble(proto, 3, histogram.count);
  appendDouble(proto, 4, histogram.sum);
  appendDouble(proto, 5, histogram.sumOfSquares);
  appendDoubles(proto, 6, histogram.limits); // bucket_limit
  appendDoubles(proto, 7, histogram.counts); // bucket
  std::string value = newValue(tag);
  appendText(value, 5, proto); // histo
  write(step, value);
}

void TensorBoardWriter::text(std::string_view tag, int64_t step, std::string_view text) {
  constexpr uint32_t string = 7, tensorClass = 2; // DT_STRING, DATA_CLASS_TENSOR
  std::string dimension;
  appendKey(dimension, 1, kVarint); // size
  appendVarint(dimension, 1);
  std::string shape;
  appendText(shape, 2, dimension);
  std::string tensor; // TensorProto
  appendKey(tensor, 1, kVarint);
  appendVarint(tensor, string);
  appendText(tensor, 2, shape);
  appendText(tensor, 8, text); // string_val
  std::string plugin;
  appendText(plugin, 1, "text"); // plugin_name
  std::string metadata;          // SummaryMetadata
  appendText(metadata, 1, plugin);
  appendKey(metadata, 4, kVarint); // data_class
  appendVarint(metadata, tensorClass);
  std::string value = newValue(tag);
  appendText(value, 8, tensor);
  appendText(value, 9, metadata);
  write(step, value);
}
