// From a program's nodes to one graph.
#pragma once

#include "runtime/cuda/CudaProgram.h"
#include "runtime/support/StreamOrder.h"

#include <functional>
#include <map>

namespace hydra::runtime::cuda {

/// Records a program as one graph: every block on its stream, switches as conditional nodes.
class Capture {
public:
  /// `early`: the node may begin before the one in front of it in the stream has ended.
  using RunNode = std::function<void(const Node &, CUstream, bool early)>;
  using NoteNode = std::function<void(const Node &, CUstream)>;

  /// `run` puts a node's work into a stream; `note` is told of every node that it was put into a
  /// stream that is being recorded (may be empty). Where it is to be told, nothing begins early:
  /// what a kernel waits would count as its time.
  Capture(const Device &device, const CudaProgram &program, RunNode run, NoteNode note)
      : device(device), program(program), runNode(std::move(run)), noteNode(std::move(note)),
        order(device.streams.size()) {}

  CUgraphExec record();

private:
  void recordStreams();
  /// Nodes [begin, end) of a list; those of a case all go to one stream.
  void recordNodes(size_t begin, size_t end, CUstream only);
  void recordSwitch(const Node &node, CUstream stream);
  /// Whether a node of a list may begin before `before`, the last of its stream (null: none), has
  /// ended. `alone`: nothing runs in other streams then.
  bool isEarly(const Node &node, const Node *before, bool alone) const;

  const Device &device;
  const CudaProgram &program;
  RunNode runNode;
  NoteNode noteNode;
  support::StreamOrder order;
  std::map<uint32_t, Event> events;
  std::vector<bool> used; ///< of the streams
  std::vector<Event> ends;
};

} // namespace hydra::runtime::cuda
