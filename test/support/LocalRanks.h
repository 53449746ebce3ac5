// The ranks of a mesh as threads of this process, for tests of plans that several ranks run.
#pragma once

#include "runtime/plan/Mesh.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/support/Error.h"

#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hydra::test {

class LocalRanks {
public:
  explicit LocalRanks(const planfile::Plan &plan)
      : plan(plan), size(static_cast<uint32_t>(runtime::ranksOf(plan))), sent(size) {}

  /// Runs `body` for every rank, each in a thread of its own. Where one throws, the others do as soon as
  /// they would meet it; what the first of them threw is thrown again.
  void run(const std::function<void(runtime::Communicator &)> &body) {
    arrived = 0;
    failure = nullptr;
    std::vector<std::jthread> threads;
    for (uint32_t rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        Rank self(*this, rank);
        try {
          body(self);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure)
            failure = std::current_exception();
          changed.notify_all();
        }
      });
    threads.clear();
    if (failure)
      std::rethrow_exception(failure);
  }

private:
  class Rank final : public runtime::Communicator {
  public:
    Rank(LocalRanks &all, uint32_t number) : all(all), number(number) {}

    uint32_t rank() const override { return number; }
    uint32_t size() const override { return all.size; }
    void allGather(const runtime::Exchange &own) override {
      all.meet(number, own.axis, own.x, [&](uint64_t from, const std::byte *given) {
        std::memcpy(own.y + from * own.bytes, given, own.bytes);
      });
    }
    void allToAll(const runtime::Exchange &own) override {
      const size_t piece = own.bytes / all.plan.mesh()->Get(own.axis)->size();
      const uint64_t place = runtime::coordinateOf(all.plan, number, own.axis);
      all.meet(number, own.axis, own.x, [&](uint64_t from, const std::byte *given) {
        std::memcpy(own.y + from * piece, given + place * piece, piece);
      });
    }

  private:
    LocalRanks &all;
    uint32_t number;
  };

  /// Shows `x` to the others, takes what the ranks of the group show, and waits until all have.
  void meet(uint32_t rank, uint32_t axis, const std::byte *x,
            const std::function<void(uint64_t, const std::byte *)> &take) {
    sent[rank] = x;
    wait();
    const uint64_t stride = runtime::strideOf(plan, axis);
    const uint64_t first = rank - runtime::coordinateOf(plan, rank, axis) * stride;
    for (uint64_t i = 0; i < plan.mesh()->Get(axis)->size(); ++i)
      take(i, sent[first + i * stride]);
    wait();
  }

  void wait() {
    std::unique_lock lock(mutex);
    const uint64_t round = arrived / size;
    if (++arrived % size == 0)
      changed.notify_all();
    changed.wait(lock, [&] { return failure || arrived / size != round; });
    if (failure && arrived / size == round)
      support::fail("another rank failed");
  }

  const planfile::Plan &plan;
  uint32_t size;
  std::vector<const std::byte *> sent;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t arrived = 0;
  std::exception_ptr failure;
};

} // namespace hydra::test
