// What ranks tell each other on the control channel, and how it is laid out in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::runtime {

/// In brackets, who sends it. Rank 0 sends messages to itself as well, without a connection.
enum class MessageType : uint8_t {
  hello,      // [r] who it is
  seen,       // [0] the connection is one to rank 0 of such a run
  welcome,    // [0] all ranks are there
  beat,       // [all] it is alive, and what it waits in
  vote,       // [r] and the last step that it has ended
  decision,   // [0] on the votes of all; and its own last step
  set,        // [r] key and value
  get,        // [r] key
  value,      // [0] key and value
  piece,      // [r] its part of a gather
  taken,      // [0] all parts have come
  checkpoint, // [0] the newest checkpoint
  failed,     // [r] why it ends
  bye,        // [r] it has done everything
  goodbye,    // [0] all have: what closes now is no loss
  over,       // [0] the run has failed
};
inline constexpr MessageType kLastMessageType = MessageType::over;

struct Message {
  MessageType type = MessageType::beat;
  std::vector<std::byte> body;
};

/// Puts fields behind each other: numbers as 8 bytes, texts and bytes behind their length.
class MessageWriter {
public:
  explicit MessageWriter(MessageType type) { message.type = type; }
  MessageWriter &number(int64_t value);
  MessageWriter &text(std::string_view value);
  MessageWriter &bytes(std::span<const std::byte> value);
  Message done() { return std::move(message); }

private:
  Message message;
};

/// Takes them out again. Throws Error when the message is shorter.
class MessageReader {
public:
  explicit MessageReader(const Message &message) : rest(message.body) {}
  int64_t number();
  std::string text();
  std::vector<std::byte> bytes();

private:
  std::span<const std::byte> take(uint64_t count);

  std::span<const std::byte> rest;
};

} // namespace hydra::runtime
