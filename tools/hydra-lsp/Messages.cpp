// Reads the messages of the protocol from a descriptor.
#include "tools/hydra-lsp/Messages.h"

#include "runtime/support/Error.h"
#include "runtime/support/Shown.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/LSP/Protocol.h"

#include <unistd.h>

#include <cerrno>

using namespace llvm;
using llvm::lsp::ErrorCode;

namespace hydra::lsp {

void Messages::fill() {
  char bytes[1 << 16];
  ssize_t got = 0;
  do
    got = ::read(descriptor, bytes, sizeof bytes);
  while (got < 0 && errno == EINTR);
  if (got <= 0)
    ended = true;
  else
    buffer.append(bytes, static_cast<size_t>(got));
}

/// Whether brackets nest deeper than a parser that calls itself should follow.
static bool nestsTooDeep(StringRef json) {
  constexpr int kMost = 200;
  int depth = 0;
  bool string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (string)
      i += c == '\\';
    if (c == '"')
      string = !string;
    else if (!string && (c == '[' || c == '{') && ++depth > kMost)
      return true;
    else if (!string && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

/// The length of the next message, whose header is taken off; nullopt: the header is not whole yet.
std::optional<size_t> Messages::readHeader() {
  constexpr size_t kMostHeader = 4096, kMostBytes = size_t{1} << 30;
  const StringRef rest = StringRef(buffer).drop_front(begin);
  const size_t end = rest.find("\r\n\r\n");
  constexpr StringLiteral kFirst = "Content-"; // of every field that a header has
  if (!kFirst.starts_with_insensitive(rest.take_front(kFirst.size())) ||
      (end == StringRef::npos && rest.size() > kMostHeader)) {
    support::fail(
        "standard input holds '{}'; expected messages of the language server protocol, which "
        "begin with Content-Length",
        support::shown(rest.take_front(60).str()));
  }
  if (end == StringRef::npos)
    return std::nullopt;
  std::optional<size_t> length;
  for (StringRef line : llvm::split(rest.take_front(end), "\r\n")) {
    const auto [name, value] = line.split(':');
    size_t number = 0;
    if (!name.equals_insensitive("content-length"))
      continue;
    if (value.trim().getAsInteger(10, number) || number > kMostBytes)
      support::fail("a message has the Content-Length '{}'; expected at most {}",
                    support::shown(value.trim().take_front(60).str()), kMostBytes);
    length = number;
  }
  if (!length)
    support::fail("a message has no Content-Length");
  if (rest.size() - end - 4 < *length)
    return std::nullopt;
  begin += end + 4;
  return length;
}

std::variant<json::Object, BadMessage, NoMessage, EndOfMessages> Messages::next() {
  const std::optional<size_t> length = readHeader();
  if (!length) {
    if (ended)
      return EndOfMessages{};
    return NoMessage{};
  }
  const std::string text = buffer.substr(begin, *length);
  begin += *length;
  if (begin == buffer.size() || begin > (size_t{1} << 20)) {
    buffer.erase(0, begin);
    begin = 0;
  }
  auto bad = [](ErrorCode code, std::string problem) {
    return BadMessage{static_cast<int>(code), std::move(problem)};
  };
  if (nestsTooDeep(text))
    return bad(ErrorCode::ParseError, "the message nests too deep");
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return bad(ErrorCode::ParseError, toString(value.takeError()));
  json::Object *object = value->getAsObject();
  if (!object || object->getString("jsonrpc") != std::optional<StringRef>("2.0"))
    return bad(ErrorCode::InvalidRequest, "the message is no object with \"jsonrpc\": \"2.0\"");
  if (!object->getString("method") && (object->get("method") || !object->get("id")))
    return bad(ErrorCode::InvalidRequest, "the message has neither a method nor an id");
  return std::move(*object);
}

} // namespace hydra::lsp
