// An executor whose runs can be started ahead, as on a GPU: by that of a CPU, which has run them by
// then.
#pragma once

#include "runtime/cpu/CpuExecutor.h"
#include "runtime/plan/TensorBytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hydra::test {

/// Fails a test when something is done beside a run that a GPU could not do.
class AheadExecutor final : public runtime::Executor {
public:
  explicit AheadExecutor(const runtime::PlanFile &file)
      : plan(file.plan()), cpu(file, {.threads = 1}) {}

  /// How many runs were started beside another.
  int besides = 0;
  /// Called in front of every start, of every write, and behind what a run does.
  std::function<void()> beforeStart, beforeWrite, behindRun;

  double run(uint32_t program) override {
    start(program, {});
    return finish();
  }
  bool startsAhead(uint32_t) const override { return true; }
  void start(uint32_t program, std::span<const uint32_t> outputs) override {
    if (beforeStart)
      beforeStart();
    EXPECT_LT(runs.size(), 2U);
    besides += runs.empty() ? 0 : 1;
    cpu.run(program);
    Copies copies;
    for (const uint32_t tensor : outputs) {
      std::vector<std::byte> &bytes = copies[tensor];
      bytes.resize(runtime::denseBytes(*plan.tensors()->Get(tensor)));
      cpu.read(tensor, bytes);
    }
    if (behindRun)
      behindRun();
    runs.push_back(std::move(copies));
  }
  double finish() override {
    EXPECT_FALSE(runs.empty());
    last = std::move(runs.front());
    runs.pop_front();
    return 1.0;
  }
  size_t inFlight() const { return runs.size(); }

  void read(uint32_t tensor, std::span<std::byte> values) override {
    const auto copy = last.find(tensor);
    if (runs.empty())
      cpu.read(tensor, values);
    else if (copy != last.end())
      std::ranges::copy(copy->second, values.begin());
    else
      ADD_FAILURE() << "tensor " << tensor << " is read beside a run";
  }
  void readRange(uint32_t tensor, uint64_t begin, std::span<std::byte> values) override {
    EXPECT_TRUE(runs.empty());
    cpu.readRange(tensor, begin, values);
  }
  void write(uint32_t tensor, std::span<const std::byte> values) override {
    EXPECT_LT(runs.size(), 2U);
    if (beforeWrite)
      beforeWrite();
    cpu.write(tensor, values);
  }
  void writeRange(uint32_t tensor, uint64_t begin, std::span<const std::byte> values) override {
    cpu.writeRange(tensor, begin, values);
  }
  void clearRange(uint32_t tensor, uint64_t begin, uint64_t size) override {
    cpu.clearRange(tensor, begin, size);
  }
  std::span<std::byte> staging(size_t bytes) override { return cpu.staging(bytes); }
  void parallelFor(int64_t tasks, const std::function<void(int64_t task)> &work) override {
    cpu.parallelFor(tasks, work);
  }
  void setProfiling(bool on) override { cpu.setProfiling(on); }
  std::vector<runtime::StepTime> stepTimes() override { return cpu.stepTimes(); }
  std::vector<runtime::StepRun> timeline() override { return cpu.timeline(); }
  uint64_t arenaBytes() const override { return cpu.arenaBytes(); }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    return cpu.describe();
  }

private:
  using Copies = std::map<uint32_t, std::vector<std::byte>>;

  const planfile::Plan &plan;
  runtime::CpuExecutor cpu;
  std::deque<Copies> runs; ///< that are under way, to the one that uses them
  Copies last;             ///< of the one that was waited for last
};

} // namespace hydra::test
