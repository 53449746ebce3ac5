// Runs plans for the CPU target.
#pragma once

#include "runtime/cpu/Arena.h"
#include "runtime/cpu/PreparedProgram.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"

#include <array>
#include <memory>
#include <vector>

namespace hydra::runtime {

struct CpuOptions {
  unsigned threads = 0;         // 0: one for each processor this process may use
  uint64_t memoryAvailable = 0; // 0: availableMemory()
  bool poison = false; // before a program, fill what it must write before it reads (Poison.h); of
                       // worker scratch, before every call
  bool dryRun = false; // machine code is looked at, not loaded, and no program can run
  Communicator *ranks = nullptr; // of a plan with a mesh, unless it is a dry run
};

/// Everything that can fail for a verified plan fails in the constructor, with one line: another
/// target, features this CPU lacks, too little memory, code that does not load, calls that do not
/// fit. The plan file must outlive the executor.
class CpuExecutor final : public Executor {
public:
  CpuExecutor(const PlanFile &file, const CpuOptions &options);
  ~CpuExecutor() override;

  double run(uint32_t program) override;
  void write(uint32_t tensor, std::span<const std::byte> values) override;
  void read(uint32_t tensor, std::span<std::byte> values) override;
  void writeRange(uint32_t tensor, uint64_t begin, std::span<const std::byte> values) override;
  void readRange(uint32_t tensor, uint64_t begin, std::span<std::byte> values) override;
  void clearRange(uint32_t tensor, uint64_t begin, uint64_t size) override;
  std::span<std::byte> staging(size_t bytes) override { return staged.first(bytes); }
  void parallelFor(int64_t tasks, const std::function<void(int64_t task)> &work) override;
  void setProfiling(bool on) override;
  std::vector<StepTime> stepTimes() override;
  std::vector<StepRun> timeline() override;
  uint64_t arenaBytes() const override;
  std::string deviceName() const override;
  std::vector<std::pair<std::string, std::string>> describe() const override;

private:
  /// Copies between the tensor in the arena and dense bytes of `size`.
  void transfer(uint32_t tensor, size_t size, std::byte *to, const std::byte *from);
  /// Where byte `begin` of a dense tensor is, of which `size` are to be moved. Throws Error.
  std::byte *placeOf(uint32_t tensor, uint64_t begin, size_t size);
  /// The functions of the plan's kernels; null ones in a dry run.
  std::vector<KernelFunction> loadCode();
  void loadPrograms(Communicator *ranks);
  void fillUnwritten(uint32_t program);
  /// Calls work(begin, size) for parts of so many bytes, on all threads: pages that are touched for
  /// the first time cost more than what is written to them.
  void inParts(size_t size, FunctionRef<void(size_t begin, size_t size)> work);

  const PlanFile &file;
  const bool poison, dryRun;
  std::unique_ptr<ThreadPool> pool;
  std::array<Arena, 3> segments; // by SegmentKind
  std::vector<NativeCode> code;  // one a blob
  std::vector<PreparedProgram> programs;
  Arena scratchMemory;
  WorkerScratch scratch;
  HostBuffer staged;
};

} // namespace hydra::runtime
