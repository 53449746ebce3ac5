// Messages over a TCP connection.
#pragma once

#include "runtime/ranks/Message.h"

#define ASIO_STANDALONE
#include <asio/ip/tcp.hpp>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>

namespace hydra::runtime {

/// Lives while it is open. Everything happens on the thread that runs the io_context, and so do the
/// calls back.
class Connection : public std::enable_shared_from_this<Connection> {
public:
  using OnMessage = std::function<void(const Message &)>;
  using OnClose = std::function<void()>;

  explicit Connection(asio::ip::tcp::socket socket);

  /// Begins to read. `onClose` is called once, when the other side closes the connection, or what
  /// it sends is no message, or `onMessage` throws; not after close().
  void start(OnMessage onMessage, OnClose onClose);
  void send(const Message &message);
  void close();

  /// Until this is called, messages of more than 64 KiB are none: anybody can connect.
  void trust() { most = kMost; }
  /// Whether everything was handed to the system.
  bool sent() const { return queue.empty() || closed; }
  /// The number of this machine's address on the connection.
  std::string localAddress() const { return local; }

private:
  static constexpr uint64_t kMost = uint64_t{1} << 40, kMostOfStrangers = uint64_t{1} << 16;
  static constexpr size_t kHeader = 9; // length of the body, and type

  void readHeader();
  void readBody();
  void write();
  void lose();

  asio::ip::tcp::socket socket;
  std::string local;
  OnMessage onMessage;
  OnClose onClose;
  uint64_t most = kMostOfStrangers;
  bool closed = false;
  std::array<std::byte, kHeader> header{};
  Message incoming;
  std::deque<std::vector<std::byte>> queue; // the first one is being written
};

} // namespace hydra::runtime
