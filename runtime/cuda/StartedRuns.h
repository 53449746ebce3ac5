// Runs of programs that are in flight, and what each leaves for the host.
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
  /// An output, where the GPU has it: so many bytes, with those between its elements.
  struct Output {
    uint32_t tensor;
    CUdeviceptr from;
    size_t bytes;
  };

  explicit StartedRuns(const Device &device) : device(device) {}
  ~StartedRuns();
  StartedRuns(const StartedRuns &) = delete;
  StartedRuns &operator=(const StartedRuns &) = delete;

  /// A run begins here in the stream, and will leave copies of these outputs. Throws Error where
  /// there is no memory for them, and std::logic_error where two runs are in flight.
  void begin(uint32_t program, std::span<const Output> outputs);
  /// It ends here. It is in flight from now on.
  void end();

  /// How many were not waited for.
  size_t inFlight() const { return count; }
  /// The program of the run that began first.
  uint32_t first() const { return runs[next].program; }
  /// Waits for it; returns the seconds it took. Throws Error, beginning with `what`, when something
  /// went wrong, and std::logic_error where none is in flight.
  double finish(const std::string &what);

  /// The copy of an output that the run left which was waited for last; nothing where it left none.
  std::span<std::byte> copyOf(uint32_t tensor);
  /// The tensor has other values now.
  void forget(uint32_t tensor);

private:
  struct Run {
    struct Copy {
      Output output;
      size_t offset;
    };
    uint32_t program = 0;
    Event begin, end, arrived; ///< the last one behind the copies
    std::vector<Copy> copies;
    HostMemory memory; ///< of these
  };
  Run &coming() { return runs[(next + count) % runs.size()]; }
  Run &last() { return runs[(next + runs.size() - 1) % runs.size()]; } ///< waited for

  const Device &device;
  /// Two that are in flight, and the one that was waited for last.
  std::array<Run, 3> runs;
  size_t next = 0, count = 0; ///< those in flight: so many from there on
};

} // namespace hydra::runtime::cuda
