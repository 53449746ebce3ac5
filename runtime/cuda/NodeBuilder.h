// From the blocks of a program to the nodes that a GPU is given.
#pragma once

#include "runtime/cuda/CudaProgram.h"
#include "runtime/cuda/DeviceLibrary.h"

#include <functional>
#include <map>

namespace hydra::runtime::cuda {

/// Writes out loops, whose iterations follow each other in a graph, and prepares calls of
/// libraries.
class NodeBuilder {
public:
  /// `functions`: by kernel. `addressOf`: where a tensor begins.
  NodeBuilder(const planfile::Plan &plan, const std::vector<CUfunction> &functions,
              DeviceLibrary &library, std::function<CUdeviceptr(uint32_t)> addressOf)
      : plan(plan), functions(functions), library(library), addressOf(std::move(addressOf)) {}

  /// Throws Error for what does not run on a GPU.
  CudaProgram build(const planfile::Program &program);

private:
  using BlockList = flatbuffers::Vector<flatbuffers::Offset<planfile::Block>>;
  /// Bytes by which the loops around a block move a tensor.
  using Shifts = std::map<uint32_t, int64_t>;

  void addBlocks(CudaProgram &program, const BlockList &blocks, const Shifts &shifts);
  void addLoop(CudaProgram &program, const planfile::Loop &loop, const Shifts &shifts);
  void addSwitch(CudaProgram &program, const planfile::Block &block, const Shifts &shifts);
  void addStep(CudaProgram &program, const planfile::Step &step, const Shifts &shifts);

  const planfile::Plan &plan;
  const std::vector<CUfunction> &functions;
  DeviceLibrary &library;
  std::function<CUdeviceptr(uint32_t)> addressOf;
};

} // namespace hydra::runtime::cuda
