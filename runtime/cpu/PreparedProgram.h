// A program of a plan with everything resolved: a flat list of nodes, functions and addresses.
#pragma once

#include "runtime/cpu/Library.h"
#include "runtime/cpu/NativeCode.h"
#include "runtime/run/Executor.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace hydra::runtime {

/// What the names and indices of a plan stand for in this process.
struct Resolved {
  const planfile::Plan &plan;
  std::array<char *, 3> segments;      // by SegmentKind
  std::vector<KernelFunction> kernels; // by index of the plan's kernels
  LibraryFactory prepare;
  CallResources resources;

  char *addressOf(uint32_t tensor) const;
};

/// Blocks in their serial order; streams and events mean nothing here. Running allocates nothing.
class PreparedProgram {
public:
  /// Throws Error when a library call does not fit its step.
  PreparedProgram(const Resolved &resolved, const planfile::Program &program);

  size_t scratchBytesPerWorker() const { return scratchBytes; }

  void run(ThreadPool &pool, const WorkerScratch &scratch);

  void setProfiling(bool on);
  /// Whether scratch is filled with kPoison before every call.
  void setPoison(bool on) { poison = on; }
  /// Appends what each step took since profiling began.
  void addTimes(uint32_t program, std::vector<StepTime> &times) const;
  /// Appends every run of every step since profiling began.
  void addRuns(uint32_t program, std::vector<StepRun> &all) const;

private:
  /// Leaves are launches and calls; a loop or switch stands before its body.
  struct Node {
    enum class Kind : uint8_t { Launch, Call, Loop, Switch };
    Kind kind;
    uint32_t end;           // index behind the node and all that is inside it
    uint32_t addresses = 0; // Launch, Call, Switch: first one
    // Launch
    KernelFunction kernel = nullptr;
    int64_t rows = 0, grain = 0;
    // Call
    std::unique_ptr<LibraryCall> call = nullptr;
    // Loop: its count, and its part of `shifts`; Switch: its divisor, and its part of `cases`
    uint64_t count = 0;
    uint32_t first = 0, last = 0;
    // Launch, Call
    const planfile::Step *step = nullptr;
    uint64_t calls = 0;
    double seconds = 0.0;
  };

  /// An address that moves by `bytes` from one iteration of a loop to the next.
  struct Shift {
    uint32_t address;
    int64_t bytes;
  };

  /// Nodes [begin, end).
  struct Range {
    uint32_t begin, end;
  };

  /// What is used while nodes are added.
  struct Builder;

  void runRange(Range range, ThreadPool &pool, const WorkerScratch &scratch);
  void runNode(Node &node, uint32_t index, ThreadPool &pool, const WorkerScratch &scratch);
  void runLoop(const Node &node, uint32_t index, ThreadPool &pool, const WorkerScratch &scratch);

  std::vector<Node> nodes;
  std::vector<char *> addresses; // of all arguments and selectors
  std::vector<Shift> shifts;
  std::vector<Range> cases;
  size_t scratchBytes = 0;
  bool profiling = false;
  bool poison = false;
  uint32_t runNumber = 0;
  std::vector<StepRun> runs; // under profiling
};

} // namespace hydra::runtime
