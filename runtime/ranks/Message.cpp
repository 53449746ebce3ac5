// Little-endian numbers and counted bytes.
#include "runtime/ranks/Message.h"

#include "runtime/support/Error.h"

#include <cstring>

using namespace hydra::runtime;

MessageWriter &MessageWriter::number(int64_t value) {
  const auto *first = reinterpret_cast<const std::byte *>(&value);
  message.body.insert(message.body.end(), first, first + sizeof value);
  return *this;
}

MessageWriter &MessageWriter::text(std::string_view value) {
  return bytes(std::as_bytes(std::span(value)));
}

MessageWriter &MessageWriter::bytes(std::span<const std::byte> value) {
  number(static_cast<int64_t>(value.size()));
  message.body.insert(message.body.end(), value.begin(), value.end());
  return *this;
}

std::span<const std::byte> MessageReader::take(uint64_t count) {
  if (count > rest.size())
    support::fail("a message of another rank ends early");
  const std::span<const std::byte> part = rest.first(static_cast<size_t>(count));
  rest = rest.subspan(part.size());
  return part;
}

int64_t MessageReader::number() {
  int64_t value = 0;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

std::string MessageReader::text() {
  const std::span<const std::byte> part = take(static_cast<uint64_t>(number()));
  return {reinterpret_cast<const char *>(part.data()), part.size()};
}

std::vector<std::byte> MessageReader::bytes() {
  const std::span<const std::byte> part = take(static_cast<uint64_t>(number()));
  return {part.begin(), part.end()};
}
