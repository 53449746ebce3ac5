// Reads the messages of the protocol from a descriptor.
#pragma once

#include "llvm/Support/JSON.h"

#include <string>
#include <variant>

namespace hydra::lsp {

/// A message that is none, with the answer to it: a code of the protocol and a line.
struct BadMessage {
  int code;
  std::string problem;
};
/// There are no more.
struct EndOfMessages {};
/// What is there of the next one is not all of it.
struct NoMessage {};

class Messages {
public:
  explicit Messages(int descriptor) : descriptor(descriptor) {}

  int waitAt() const { return descriptor; }
  /// Takes in what there is to read. To be called when there is something.
  void fill();
  /// The next one: an object with a method, or with an id. Throws support::Error for a stream that
  /// has no messages in it.
  std::variant<llvm::json::Object, BadMessage, NoMessage, EndOfMessages> next();

private:
  std::optional<size_t> readHeader();

  int descriptor;
  std::string buffer;
  size_t begin = 0; ///< of what is not read yet
  bool ended = false;
};

} // namespace hydra::lsp
