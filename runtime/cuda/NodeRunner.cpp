// Launches of kernels and calls of libraries.
#include "runtime/cuda/NodeRunner.h"

#include "runtime/support/KernelArguments.h"
#include "runtime/support/Shown.h"

#include <algorithm>
#include <array>

namespace hydra::runtime::cuda {

using namespace hydra::planfile;
using support::shown;

void NodeRunner::allocate(std::span<const CudaProgram> programs, size_t streams,
                          const std::string &origin) {
  std::vector<size_t> needed(streams, 0);
  for (const CudaProgram &program : programs)
    for (const Node &node : program.nodes)
      if (node.call)
        needed[node.stream] = std::max(needed[node.stream], node.call->workspaceBytes());
  memory.clear();
  for (const size_t bytes : needed)
    memory.emplace_back(bytes, origin);
}

void NodeRunner::run(const Node &node, CUstream stream, bool early) const {
  if (node.call)
    node.call->run(node.args, memory[node.stream].get(), stream);
  else
    launch(node, stream, early);
}

void NodeRunner::launch(const Node &node, CUstream stream, bool early) const {
  const bool table = node.kernel->instances() > 1;
  const size_t parameters = table ? 1 : node.args.size();
  std::array<void *, support::kMostKernelArguments> pointers; // the plan was verified
  for (size_t i = 0; i < parameters; ++i)
    pointers[i] = const_cast<CUdeviceptr *>(&node.args[i]);
  const Dim3 &grid = *node.kernel->grid(), &block = *node.kernel->block();
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = node.blocks;
  config.gridDimY = table ? node.instances : grid.y();
  config.gridDimZ = grid.z();
  config.blockDimX = block.x();
  config.blockDimY = block.y();
  config.blockDimZ = block.z();
  config.sharedMemBytes = node.kernel->shared_bytes();
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  const CUresult status =
      driver().cuLaunchKernelEx(&config, node.function, pointers.data(), nullptr);
  if (status != CUDA_SUCCESS)
    driver().check(status, placeOf(node));
}

std::string NodeRunner::placeOf(const Node &node) const {
  const Location &at = *plan.locations()->Get(node.step->location());
  return fmt::format("step {} (layer {}, {}:{}:{})", shown(node.step->name()->string_view()),
                     node.step->layer(), shown(plan.files()->Get(at.file())->string_view()),
                     at.line(), at.column());
}

} // namespace hydra::runtime::cuda
