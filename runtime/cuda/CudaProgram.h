// A program of a plan with everything resolved.
#pragma once

#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceCall.h"

#include <string>
#include <vector>

namespace hydra::runtime::cuda {

/// One step; or a switch, which stands before the nodes of its cases.
struct Node {
  const planfile::Step *step = nullptr;
  std::vector<CUdeviceptr> args; ///< of a switch: its selector
  size_t end = 0;                ///< index behind the node and all that is inside it
  // Launch
  CUfunction function = nullptr;
  const planfile::Kernel *kernel = nullptr;
  uint32_t instances = 1; ///< lists of arguments
  uint32_t blocks = 0;    ///< along x
  // Call
  const DeviceCall *call = nullptr;
  // Switch: `function` sets it in a graph
  const planfile::Switch *choice = nullptr;
  std::vector<std::pair<size_t, size_t>> cases; ///< nodes [first, second)
  // Order
  uint32_t stream = 0;
  std::vector<uint32_t> waits; ///< numbers of events
  int32_t signals = -1;
  // Profile
  uint64_t calls = 0;
  double seconds = 0.0;
  double hostSeconds = 0.0; ///< of its launches, step by step
};

struct CudaProgram {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Event> events; ///< of profiling: before and after each node
  std::vector<bool> ran;     ///< under profiling, in the last run
  CUgraphExec graph = nullptr;
  int64_t runs = 0; ///< step by step, before there is a graph
};

} // namespace hydra::runtime::cuda
