// The work of nodes, put into streams.
#pragma once

#include "runtime/cuda/CudaProgram.h"

#include <span>
#include <string>
#include <vector>

namespace hydra::runtime::cuda {

/// Launches kernels and calls libraries, which work in memory that is kept here for each stream.
class NodeRunner {
public:
  explicit NodeRunner(const planfile::Plan &plan) : plan(plan) {}

  /// Memory for the calls of these programs: for each of so many streams what its largest needs.
  /// Throws Error, beginning with `origin`, where there is not enough.
  void allocate(std::span<const CudaProgram> programs, size_t streams, const std::string &origin);
  std::span<const DeviceMemory> workspaces() const { return memory; }

  /// Puts a step into a stream: its own, or one for all. `early`: it may begin before the kernel in
  /// front of it has ended. Throws Error that names the step.
  void run(const Node &node, CUstream stream, bool early = false) const;

  /// The step, as errors name it: `step linear.3 (layer 2, llama.mlir:40:7)`.
  std::string placeOf(const Node &node) const;

private:
  void launch(const Node &node, CUstream stream, bool early) const;

  const planfile::Plan &plan;
  std::vector<DeviceMemory> memory; ///< by stream
};

} // namespace hydra::runtime::cuda
