// Frames: the length of the body, the type, the body.
#include "runtime/ranks/Connection.h"

#include <asio/read.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

using namespace hydra::runtime;

Connection::Connection(asio::ip::tcp::socket connected) : socket(std::move(connected)) {
  asio::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const asio::ip::tcp::endpoint endpoint = socket.local_endpoint(ignored);
  asio::ip::address address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  local = address.to_string();
}

void Connection::start(OnMessage messages, OnClose closed) {
  onMessage = std::move(messages);
  onClose = std::move(closed);
  readHeader();
}

void Connection::readHeader() {
  asio::async_read(socket, asio::buffer(header),
                   [self = shared_from_this()](const asio::error_code &error, size_t) {
                     if (error)
                       return self->lose();
                     self->readBody();
                   });
}

void Connection::readBody() {
  uint64_t length = 0;
  std::memcpy(&length, header.data(), sizeof length);
  const auto type = static_cast<MessageType>(header.back());
  if (length > most || type > kLastMessageType)
    return lose();
  incoming.type = type;
  incoming.body.resize(length);
  asio::async_read(socket, asio::buffer(incoming.body),
                   [self = shared_from_this()](const asio::error_code &error, size_t) {
                     if (error)
                       return self->lose();
                     try {
                       if (!self->closed)
                         self->onMessage(self->incoming);
                     } catch (const std::exception &) {
                       return self->lose();
                     }
                     if (!self->closed)
                       self->readHeader();
                   });
}

void Connection::send(const Message &message) {
  if (closed)
    return;
  std::vector<std::byte> frame(kHeader + message.body.size());
  const uint64_t length = message.body.size();
  std::memcpy(frame.data(), &length, sizeof length);
  frame[kHeader - 1] = static_cast<std::byte>(message.type);
  std::copy(message.body.begin(), message.body.end(), frame.begin() + kHeader);
  queue.push_back(std::move(frame));
  if (queue.size() == 1)
    write();
}

void Connection::write() {
  asio::async_write(socket, asio::buffer(queue.front()),
                    [self = shared_from_this()](const asio::error_code &error, size_t) {
                      // What still comes in (why the run is over) is read; then reading fails, too.
                      if (error || self->closed)
                        return self->queue.clear();
                      self->queue.pop_front();
                      if (!self->queue.empty())
                        self->write();
                    });
}

void Connection::close() {
  closed = true;
  asio::error_code ignored;
  socket.close(ignored);
}

void Connection::lose() {
  if (closed)
    return;
  close();
  onClose();
}
