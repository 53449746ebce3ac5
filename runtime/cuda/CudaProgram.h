// A program of a plan with everything resolved.
#pragma once

#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceCall.h"

#include <string>
#include <vector>

namespace hydra::runtime::cuda {

/// One step.
struct Node {
  const planfile::Step *step = nullptr;
  std::vector<CUdeviceptr> args;
  // Launch
  CUfunction function = nullptr;
  const planfile::Kernel *kernel = nullptr;
  uint32_t instances = 1; ///< lists of arguments
  // Call
  const DeviceCall *call = nullptr;
  // Order
  uint32_t stream = 0;
  std::vector<uint32_t> waits; ///< numbers of events
  int32_t signals = -1;
  // Profile
  uint64_t calls = 0;
  double seconds = 0.0;
};

struct CudaProgram {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Event> events; ///< of profiling: before each node, and after the last
  CUgraphExec graph = nullptr;
};

} // namespace hydra::runtime::cuda
