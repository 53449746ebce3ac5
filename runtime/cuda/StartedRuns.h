// Runs of programs that are under way, and what each left for the host.
#pragma once

#include "runtime/cuda/Device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hydra::runtime::cuda {

/// At most two at a time, in the first stream of the device, one behind the other. The copies of
/// outputs that a run leaves stay until the run behind it was waited for.
class StartedRuns {
public:
  /// An output, where the GPU has it.
  struct Output {
    uint32_t tensor;
    CUdeviceptr from;
    size_t bytes;
  };

  explicit StartedRuns(const Device &device) : device(device) {}
  ~StartedRuns();
  StartedRuns(const StartedRuns &) = delete;
  StartedRuns &operator=(const StartedRuns &) = delete;

  /// A run begins here in the stream. Throws std::logic_error where two are under way.
  void begin(uint32_t program);
  /// It ends here, and leaves copies of these outputs. It is under way from now on.
  void end(std::span<const Output> outputs);

  size_t underWay() const { return count; }
  /// The program of the run that began first.
  uint32_t first() const { return runs[next].program; }
  /// Waits for it; returns the seconds it took. Throws Error, beginning with `what`, when something
  /// went wrong, and std::logic_error where none is under way.
  double finish(const std::string &what);
  /// Whether one is under way.
  bool areRunning() const { return count > 0 && !last().arrived.isReached(); }

  /// The copy of an output that the run left which was waited for last; nothing where it left none.
  std::span<const std::byte> copyOf(uint32_t tensor) const;

private:
  struct Run {
    struct Copy {
      uint32_t tensor;
      size_t offset, bytes;
    };
    uint32_t program = 0;
    Event begin, end, arrived; ///< the last one behind the copies
    std::vector<Copy> copies;
    HostMemory memory; ///< of these
  };
  const Run &last() const { return runs[(next + count - 1) % runs.size()]; }
  Run &coming() { return runs[(next + count) % runs.size()]; }

  const Device &device;
  /// Two that are under way, and the one that was waited for last.
  std::array<Run, 3> runs;
  size_t next = 0, count = 0; ///< those under way: so many from there on
};

} // namespace hydra::runtime::cuda
