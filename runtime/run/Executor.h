// What a session needs of a device: run programs, move tensors, tell times.
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/run/DeviceWatch.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// What one step of a plan took, all its runs under profiling together.
struct StepTime {
  const planfile::Step *step = nullptr;
  uint32_t program = 0;
  uint64_t calls = 0; // more than runs of the program when it is inside a loop
  double seconds = 0.0;
  double hostSeconds = 0.0; // of the thread that starts it; 0 inside of a graph that is replayed
};

/// One run of a step under profiling, or of one of the kernels that a library makes of it.
struct StepRun {
  const planfile::Step *step = nullptr;
  uint32_t program = 0;
  uint32_t run = 0;              // equal for what one run of the program did
  double begin = 0.0, end = 0.0; // seconds on a clock of the device
  uint32_t stream = 0;
  std::string kernel;                      // as the device calls it; empty on a CPU
  std::array<uint32_t, 3> grid{}, block{}; // CUDA
  uint64_t copied = 0;                     // bytes, of a copy that is no kernel
};

/// What the thread that runs the plan did under profiling: it started what is `run` of a program.
struct HostRun {
  std::string name; // of the driver's function
  uint32_t program = 0;
  uint32_t run = 0; // 0 where that is not known
  double begin = 0.0, end = 0.0;
};

/// Memory of the host without content, which grows and is used again.
class HostBuffer {
public:
  std::span<std::byte> first(size_t bytes) {
    if (bytes > size) {
      size = 0;
      memory.reset(); // before there is more, or an error
      memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size = bytes;
    }
    return {memory.get(), bytes};
  }

private:
  std::unique_ptr<std::byte[]> memory;
  size_t size = 0;
};

/// A plan that is loaded on a device. Nothing is allocated by run, and by write and read of tensors
/// that are dense, but for profiling.
class Executor {
public:
  virtual ~Executor() = default;

  /// Runs program `program` of the plan to its end; returns the seconds it took on the device.
  virtual double run(uint32_t program) = 0;
  /// Whether `start` returns while the program still runs, so that the next run can be started
  /// behind it.
  virtual bool startsAhead(uint32_t /*program*/) const { return false; }
  /// Starts a run. What is written from now on is for the next run. At most one other is in flight,
  /// which `finish` waits for first, before anything is written again. Once a run was waited for,
  /// `read` gives `outputs` as that run left them, until the next one was waited for; while another
  /// is in flight, nothing else is to be read. Throws Error when it cannot be started, and then
  /// some of its steps may have run.
  virtual void start(uint32_t program, std::span<const uint32_t> /*outputs*/) {
    startedSeconds = run(program);
  }
  /// Waits for the run that was started first; returns the seconds it took on the device.
  virtual double finish() { return startedSeconds; }

  /// Copies a tensor of the plan from or to dense row-major bytes in its dtype. Throws Error when
  /// the size is another.
  virtual void write(uint32_t tensor, std::span<const std::byte> values) = 0;
  virtual void read(uint32_t tensor, std::span<std::byte> values) = 0;
  /// The same for bytes [begin, begin + values.size()) of a dense tensor. Throws Error when it is
  /// not dense, or has not so many.
  virtual void writeRange(uint32_t tensor, uint64_t begin, std::span<const std::byte> values) = 0;
  virtual void readRange(uint32_t tensor, uint64_t begin, std::span<std::byte> values) = 0;
  /// Zeros bytes [begin, begin + size) of a dense tensor, on the device. Throws Error as
  /// writeRange.
  virtual void clearRange(uint32_t tensor, uint64_t begin, uint64_t size) = 0;

  /// Bytes that go between the device and staging memory at a time.
  static constexpr size_t kStagingBytes = size_t{32} << 20;
  /// Memory of the host, `bytes` of it with any content, that the device reaches by itself, until
  /// the next call. `writeRange` from there may be under way when it returns, so that the host goes
  /// on: what was written is not to be changed. The next call waits until a place is free.
  /// Allocates at first, and where more than kStagingBytes are asked for.
  virtual std::span<std::byte> staging(size_t bytes) = 0;
  /// Calls work(task) for each task in [0, tasks) on the threads of the host that this rank may
  /// use. Which of them runs a task must not matter.
  virtual void parallelFor(int64_t tasks, const std::function<void(int64_t task)> &work) = 0;

  /// Starts (from zero) or stops taking times of steps. Off at first.
  virtual void setProfiling(bool on) = 0;
  /// In the order of programs and of steps in them.
  virtual std::vector<StepTime> stepTimes() = 0;
  /// Everything that ran since profiling began, in the order of its beginning. Throws Error where
  /// the device cannot say.
  virtual std::vector<StepRun> timeline() = 0;
  /// What was started since profiling began, where that takes time of its own: graphs on a GPU.
  virtual std::vector<HostRun> launches() { return {}; }
  /// Seconds on the clock of the time line, now.
  virtual double clock() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
  }
  /// Whether a GPU is given each step by itself, not a captured graph.
  virtual bool launchesSteps() const { return false; }
  /// Of a GPU; else 0.
  virtual uint32_t multiprocessors() const { return 0; }
  /// FLOP/s of a large bf16 matmul, measured now; nothing where that is of no use or impossible.
  virtual std::optional<double> matmulRate() { return std::nullopt; }
  /// What the device tells of its clock and power from now on; null where it tells nothing.
  virtual std::unique_ptr<DeviceWatch> watch() { return nullptr; }

  /// Bytes that the plan's segments take.
  virtual uint64_t arenaBytes() const = 0;
  /// What runs the plan, such as `NVIDIA H200 (sm_90)`: the same for all of a kind.
  virtual std::string deviceName() const { return ""; }
  /// Of a GPU's driver; else empty.
  virtual std::string driverVersion() const { return ""; }
  /// Rows of the start-up table: what runs the plan, such as {"threads", "2"}.
  virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;

private:
  double startedSeconds = 0.0;
};

} // namespace hydra::runtime
