// all_gather and all_to_all over TCP, by Gloo: one context for the group of each axis.
#include "runtime/ranks/GlooFunction.h"

#include <gloo/allgather.h>
#include <gloo/alltoall.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

using namespace hydra::runtime;

namespace {

/// Others notice when a rank is gone or hangs, and end the process.
constexpr std::chrono::hours kNever{24 * 30};

/// Names of one group in the store of all.
class GroupStore final : public gloo::rendezvous::Store {
public:
  GroupStore(hydra::runtime::Store &store, std::string prefix)
      : store(store), prefix(std::move(prefix)) {}

  void set(const std::string &key, const std::vector<char> &data) override {
    std::vector<std::byte> bytes(data.size());
    std::memcpy(bytes.data(), data.data(), data.size());
    store.set(prefix + key, bytes);
  }
  std::vector<char> get(const std::string &key) override {
    const std::vector<std::byte> bytes = store.get(prefix + key);
    std::vector<char> data(bytes.size());
    std::memcpy(data.data(), bytes.data(), bytes.size());
    return data;
  }
  void wait(const std::vector<std::string> &keys) override {
    for (const std::string &key : keys)
      store.get(prefix + key);
  }

private:
  hydra::runtime::Store &store;
  const std::string prefix;
};

/// Gloo's text without the place in its sources.
std::string textOf(const std::exception &error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

class GlooCommunicator final : public Communicator {
public:
  explicit GlooCommunicator(const GlooOptions &options) : number(options.rank) {
    gloo::transport::tcp::attr attributes(options.address.c_str());
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(attributes);
    for (const uint32_t extent : options.mesh)
      count *= extent;
    uint32_t inner = count;
    for (size_t axis = 0; axis < options.mesh.size(); ++axis) {
      const uint32_t extent = options.mesh[axis];
      inner /= extent; // ranks from one coordinate to the next
      const uint32_t coordinate = number / inner % extent;
      auto group = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(coordinate),
                                                               static_cast<int>(extent));
      group->setTimeout(kNever);
      if (extent > 1) {
        const uint32_t first = number - coordinate * inner;
        GroupStore store(*options.store,
                         "gloo " + std::to_string(axis) + " " + std::to_string(first) + " ");
        group->connectFullMesh(store, device);
      }
      groups.push_back(std::move(group));
    }
  }

  uint32_t rank() const override { return number; }
  uint32_t size() const override { return count; }

  void allGather(const Exchange &exchange) override {
    const std::shared_ptr<gloo::Context> group = groups[exchange.axis];
    const auto ranks = static_cast<size_t>(group->size);
    if (ranks == 1) {
      std::memcpy(exchange.y, exchange.x, exchange.bytes);
      return;
    }
    call([&] {
      gloo::AllgatherOptions options(group);
      options.setInput(bytesOf(exchange.x), exchange.bytes);
      options.setOutput(bytesOf(exchange.y), exchange.bytes * ranks);
      gloo::allgather(options);
    });
  }

  void allToAll(const Exchange &exchange) override {
    const std::shared_ptr<gloo::Context> group = groups[exchange.axis];
    if (group->size == 1) {
      std::memcpy(exchange.y, exchange.x, exchange.bytes);
      return;
    }
    call([&] {
      gloo::AlltoallOptions options(group);
      options.setInput(bytesOf(exchange.x), exchange.bytes);
      options.setOutput(bytesOf(exchange.y), exchange.bytes);
      gloo::alltoall(options);
    });
  }

private:
  /// Gloo does not write to its inputs, but takes no pointers to const.
  static char *bytesOf(const std::byte *bytes) {
    return const_cast<char *>(reinterpret_cast<const char *>(bytes));
  }

  template <typename Work> static void call(const Work &work) {
    try {
      work();
    } catch (const std::exception &error) {
      throw CommunicationError("lost another rank: " + textOf(error));
    }
  }

  uint32_t number, count = 1;
  std::vector<std::shared_ptr<gloo::rendezvous::Context>> groups;
};

} // namespace

Communicator *hydraMakeGlooCommunicator(const GlooOptions &options) {
  try {
    return new GlooCommunicator(options);
  } catch (const hydra::support::Error &) { // of the store
    throw;
  } catch (const std::exception &error) {
    throw CommunicationError("cannot connect to the other ranks: " + textOf(error));
  }
}
