// From a program's nodes to one graph.
#pragma once

#include "runtime/cuda/CudaProgram.h"

#include <functional>
#include <map>

namespace hydra::runtime::cuda {

/// Records a program as one graph: every block on its stream, switches as conditional nodes.
class Capture {
public:
  using RunNode = std::function<void(const Node &, CUstream)>;

  /// `run` puts a node's work into a stream; `note` is told of every node that it was put into a
  /// stream that is being recorded (may be empty).
  Capture(const Device &device, const CudaProgram &program, RunNode run, RunNode note)
      : device(device), program(program), runNode(std::move(run)), noteNode(std::move(note)) {}

  CUgraphExec record();

private:
  void recordStreams();
  /// Nodes [begin, end) of a list; those of a case all go to one stream.
  void recordNodes(size_t begin, size_t end, CUstream only);
  void recordSwitch(const Node &node, CUstream stream);

  const Device &device;
  const CudaProgram &program;
  RunNode runNode, noteNode;
  std::map<uint32_t, Event> events;
  std::vector<bool> used; ///< of the streams
  std::vector<Event> ends;
};

} // namespace hydra::runtime::cuda
