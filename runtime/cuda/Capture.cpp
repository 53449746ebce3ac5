// Streams are recorded as they are; the cases of a switch become graphs inside a conditional node.
#include "runtime/cuda/Capture.h"

#include "runtime/plan/EarlyStart.h"

#include <array>

namespace hydra::runtime::cuda {

namespace {

/// A stream for what is recorded into another graph meanwhile.
class ExtraStream {
public:
  ExtraStream() {
    driver().check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                   "cannot make a stream");
  }
  ~ExtraStream() { driver().cuStreamDestroy(stream); }
  ExtraStream(const ExtraStream &) = delete;
  ExtraStream &operator=(const ExtraStream &) = delete;
  CUstream get() const { return stream; }

private:
  CUstream stream = nullptr;
};

/// What a stream that is being recorded has come to.
struct Recorded {
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> last;

  explicit Recorded(CUstream stream) {
    const Driver &d = driver();
    CUstreamCaptureStatus status{};
    const CUgraphNode *nodes = nullptr;
    const CUgraphEdgeData *edges = nullptr;
    size_t count = 0;
    d.check(d.cuStreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, &edges, &count),
            "cannot look at a captured graph");
    last.assign(nodes, nodes + count);
  }
};

} // namespace

CUgraphExec Capture::record() {
  const Driver &d = driver();
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  d.check(d.cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "cannot begin to capture");
  try {
    recordStreams();
  } catch (...) { // leaves a stream on which other programs can run
    if (d.cuStreamEndCapture(device.stream, &graph) == CUDA_SUCCESS)
      d.cuGraphDestroy(graph);
    throw;
  }
  d.check(d.cuStreamEndCapture(device.stream, &graph),
          fmt::format("cannot capture program {}", program.name));
  const CUresult status = d.cuGraphInstantiate(&executable, graph, 0);
  d.cuGraphDestroy(graph);
  d.check(status, fmt::format("cannot make a graph of program {}", program.name));
  return executable;
}

/// All streams begin behind the first and end before it does.
void Capture::recordStreams() {
  ends.resize(device.streams.size());
  used.assign(device.streams.size(), false);
  ends[0].record(device.stream);
  recordNodes(0, program.nodes.size(), nullptr);
  for (size_t i = 1; i < device.streams.size(); ++i) {
    if (!used[i])
      continue;
    ends[i].record(device.streams[i]);
    ends[i].makeWait(device.stream);
  }
}

bool Capture::isEarly(const Node &node, const Node *before, bool alone) const {
  if (noteNode || !node.kernel || !node.kernel->early() || !node.waits.empty() || !before ||
      !before->kernel)
    return false;
  return beginsEarly(*before->step, alone);
}

void Capture::recordNodes(size_t begin, size_t end, CUstream only) {
  std::map<uint32_t, const Node *> last; // of each stream
  for (size_t i = begin; i < end; i = program.nodes[i].end) {
    const Node &node = program.nodes[i];
    CUstream stream = only ? only : device.streams[node.stream];
    if (!only && node.stream != 0 && !used[node.stream]) {
      ends[0].makeWait(stream);
      used[node.stream] = true;
    }
    if (!only)
      for (const uint32_t event : node.waits) {
        events.at(event).makeWait(stream);
        order.wait(node.stream, event);
      }
    if (node.choice)
      recordSwitch(node, stream);
    else
      runNode(node, stream,
              isEarly(node, last[only ? 0 : node.stream], only || order.isAlone(node.stream)));
    last[only ? 0 : node.stream] = &node;
    if (!only)
      order.add(node.stream);
    if (noteNode && !node.choice)
      noteNode(node, stream);
    if (!only && node.signals >= 0) {
      events[static_cast<uint32_t>(node.signals)].record(stream);
      order.signal(node.stream, static_cast<uint32_t>(node.signals));
    }
  }
}

void Capture::recordSwitch(const Node &node, CUstream stream) {
  const Driver &d = driver();
  CUcontext context = nullptr;
  d.check(d.cuCtxGetCurrent(&context), "cannot use the GPU");
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
  params.conditional.size = static_cast<unsigned>(node.cases.size());
  params.conditional.ctx = context;
  d.check(d.cuGraphConditionalHandleCreate(&params.conditional.handle, Recorded(stream).graph,
                                           context, /*default*/ 0, /*flags*/ 0),
          "cannot make a switch in a graph (a driver for CUDA 12.8 or newer can)");
  // One thread tells the node its number.
  CUdeviceptr selector = node.args.front();
  int divisor = node.choice->divisor();
  std::array<void *, 3> arguments = {&params.conditional.handle, &selector, &divisor};
  d.check(d.cuLaunchKernel(node.function, 1, 1, 1, 1, 1, 1, 0, stream, arguments.data(), nullptr),
          "cannot set a switch");
  const Recorded before(stream);
  CUgraphNode added = nullptr;
  d.check(d.cuGraphAddNode(&added, before.graph, before.last.data(), nullptr, before.last.size(),
                           &params),
          "cannot add a switch to a graph (a driver for CUDA 12.8 or newer can)");
  const ExtraStream inner;
  for (size_t i = 0; i < node.cases.size(); ++i) {
    CUgraph body = params.conditional.phGraph_out[i];
    d.check(d.cuStreamBeginCaptureToGraph(inner.get(), body, nullptr, nullptr, 0,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "cannot begin to capture a case");
    recordNodes(node.cases[i].first, node.cases[i].second, inner.get());
    d.check(d.cuStreamEndCapture(inner.get(), &body), "cannot capture a case");
  }
  d.check(d.cuStreamUpdateCaptureDependencies(stream, &added, nullptr, 1,
                                              CU_STREAM_SET_CAPTURE_DEPENDENCIES),
          "cannot go on behind a switch");
}

} // namespace hydra::runtime::cuda
