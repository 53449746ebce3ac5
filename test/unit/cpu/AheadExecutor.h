// An executor whose runs can be started ahead, as on a GPU: that of a CPU, on a thread of its own,
// which does one thing after the other.
#pragma once

#include "runtime/cpu/CpuExecutor.h"
#include "runtime/plan/TensorBytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hydra::test {

/// Does work on its thread, in the order in which it came.
class TestStream {
public:
  ~TestStream() {
    add([this] { ends = true; });
    thread.join();
  }
  /// Returns how much there will have been behind it.
  uint64_t add(std::function<void()> next) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(next));
    changed.notify_all();
    return ++added;
  }
  void wait(uint64_t position) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done >= position; });
  }
  void waitForAll() { wait(added); }

private:
  void run() {
    while (!ends) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !work.empty(); });
      const std::function<void()> next = std::move(work.front());
      work.pop_front();
      lock.unlock();
      next();
      lock.lock();
      ++done;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  uint64_t added = 0, done = 0;
  bool ends = false; ///< of the thread
  std::thread thread{[this] { run(); }};
};

/// Fails a test when something is done beside a run that a GPU could not do.
class AheadExecutor final : public runtime::Executor {
public:
  /// `ranks`: of a plan with a mesh.
  explicit AheadExecutor(const runtime::PlanFile &file, runtime::Communicator *ranks = nullptr)
      : plan(file.plan()), cpu(file, {.threads = 1, .ranks = ranks}) {}

  /// How many runs were started, and how many of them beside another.
  int starts = 0, besides = 0;
  /// Called in front of every start, of every write, and behind every start.
  std::function<void()> beforeStart, beforeWrite, behindStart;

  double run(uint32_t program) override {
    start(program, {});
    return finish();
  }
  bool startsAhead(uint32_t) const override { return true; }
  void start(uint32_t program, std::span<const uint32_t> outputs) override {
    ++starts;
    if (beforeStart)
      beforeStart();
    EXPECT_LT(runs.size(), 2U);
    besides += runs.empty() ? 0 : 1;
    const auto next = std::make_shared<Run>();
    for (const uint32_t tensor : outputs)
      next->copies[tensor].resize(runtime::denseBytes(*plan.tensors()->Get(tensor)));
    next->end = stream.add([this, program, next] { make(program, *next); });
    if (behindStart)
      behindStart();
    runs.push_back(next);
  }
  double finish() override {
    EXPECT_FALSE(runs.empty());
    last = std::move(runs.front());
    runs.pop_front();
    stream.wait(last->end);
    if (last->error)
      std::rethrow_exception(last->error);
    return 1.0;
  }
  size_t inFlight() const { return runs.size(); }

  void read(uint32_t tensor, std::span<std::byte> values) override {
    if (runs.empty())
      return still().read(tensor, values);
    const auto copy = last ? last->copies.find(tensor) : Copies::iterator();
    if (last && copy != last->copies.end())
      std::ranges::copy(copy->second, values.begin());
    else
      ADD_FAILURE() << "tensor " << tensor << " is read beside a run";
  }
  void readRange(uint32_t tensor, uint64_t begin, std::span<std::byte> values) override {
    still().readRange(tensor, begin, values);
  }
  void write(uint32_t tensor, std::span<const std::byte> values) override {
    EXPECT_LT(runs.size(), 2U);
    if (beforeWrite)
      beforeWrite();
    runtime::checkSize(*plan.tensors()->Get(tensor), values.size());
    stream.add([this, tensor, copy = std::vector(values.begin(), values.end())] {
      cpu.write(tensor, copy);
    });
  }
  void writeRange(uint32_t tensor, uint64_t begin, std::span<const std::byte> values) override {
    still().writeRange(tensor, begin, values);
  }
  void clearRange(uint32_t tensor, uint64_t begin, uint64_t size) override {
    still().clearRange(tensor, begin, size);
  }
  std::span<std::byte> staging(size_t bytes) override { return still().staging(bytes); }
  void parallelFor(int64_t tasks, const std::function<void(int64_t task)> &work) override {
    for (int64_t task = 0; task < tasks; ++task)
      work(task);
  }
  void setProfiling(bool on) override { still().setProfiling(on); }
  std::vector<runtime::StepTime> stepTimes() override { return still().stepTimes(); }
  std::vector<runtime::StepRun> timeline() override { return still().timeline(); }
  uint64_t arenaBytes() const override { return cpu.arenaBytes(); }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    return cpu.describe();
  }

private:
  using Copies = std::map<uint32_t, std::vector<std::byte>>;
  /// A run, and what it leaves to the one that waits for it.
  struct Run {
    uint64_t end = 0; ///< of the stream
    Copies copies;
    std::exception_ptr error;
  };

  void make(uint32_t program, Run &run) {
    try {
      cpu.run(program);
      for (auto &[tensor, bytes] : run.copies)
        cpu.read(tensor, bytes);
    } catch (...) {
      run.error = std::current_exception();
    }
  }
  /// Nothing is under way, and nothing may be.
  runtime::CpuExecutor &still() {
    EXPECT_TRUE(runs.empty());
    stream.waitForAll();
    return cpu;
  }

  const planfile::Plan &plan;
  runtime::CpuExecutor cpu;
  std::deque<std::shared_ptr<Run>> runs; ///< those that were not waited for
  std::shared_ptr<Run> last;             ///< the one that was waited for last
  TestStream stream;
};

} // namespace hydra::test
