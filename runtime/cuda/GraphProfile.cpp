// Times of the steps of replayed graphs, as CUPTI records them.
#include "runtime/cuda/GraphProfile.h"

namespace hydra::runtime::cuda {

using namespace hydra::planfile;

/// Whether runs of a node are recorded. A call may end in a node whose runs are not: what joins the
/// streams of NCCL's copy engines.
static bool isRecorded(CUgraphNode node) {
  CUgraphNodeType type{};
  driver().check(driver().cuGraphNodeGetType(node, &type), "cannot look at a captured graph");
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY;
}

void GraphProfile::note(const CudaProgram &program, const Node &node, CUstream stream,
                        std::set<CUgraphNode> &known) {
  const Driver &d = driver();
  CUstreamCaptureStatus status{};
  const CUgraphNode *last = nullptr;
  // Asked for because the library's kernels start early by edges that are more than an order.
  const CUgraphEdgeData *edges = nullptr;
  std::vector<CUgraphEdgeData> edgesBefore;
  size_t count = 0;
  d.check(d.cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, &edges, &count),
          "cannot look at a captured graph");
  const uint64_t tag = static_cast<uint64_t>(&program - programs.data()) << 33 |
                       static_cast<uint64_t>(&node - program.nodes.data()) << 1;
  std::vector<CUgraphNode> fresh(last, last + count);
  bool counts = true; // calls, by the runs of one node that CUPTI records
  while (!fresh.empty()) {
    const CUgraphNode one = fresh.back();
    fresh.pop_back();
    if (!known.insert(one).second)
      continue;
    const bool isCounted = counts && isRecorded(one);
    cupti->noteNode(one, tag | isCounted);
    counts &= !isCounted;
    size_t before = 0;
    d.check(d.cuGraphNodeGetDependencies(one, nullptr, nullptr, &before),
            "cannot look at a captured graph");
    std::vector<CUgraphNode> dependencies(before);
    edgesBefore.resize(before);
    if (before > 0)
      d.check(d.cuGraphNodeGetDependencies(one, dependencies.data(), edgesBefore.data(), &before),
              "cannot look at a captured graph");
    fresh.insert(fresh.end(), dependencies.begin(), dependencies.end());
  }
}

void GraphProfile::start() {
  runs.clear();
  started.clear();
  cupti->start();
  origin = cupti->now();
}

std::vector<HostRun> GraphProfile::launches() const {
  std::vector<uint32_t> numbers; // of graphs, in the order in which they began
  std::set<uint32_t> known;
  for (const StepRun &run : runs)
    if (known.insert(run.run).second)
      numbers.push_back(run.run);
  std::vector<HostRun> all = started;
  if (numbers.size() != all.size())
    return all; // what belongs together is not known
  for (size_t i = 0; i < all.size(); ++i)
    all[i].run = numbers[i];
  return all;
}

/// Whether a step runs a kernel of that name: launches run their own.
bool GraphProfile::canBe(const Step &step, std::string_view kernel) const {
  const Launch *launch = step.action_as_Launch();
  return !launch || plan.kernels()->Get(launch->kernel())->symbol()->string_view() == kernel;
}

void GraphProfile::takeRecords() {
  uint32_t launch = 0; // of a graph
  for (KernelRun &record : cupti->stop()) {
    if (record.node == kUnknownNode)
      continue;
    if (record.correlation != 0)
      launch = record.correlation;
    const uint32_t number = static_cast<uint32_t>(record.node >> 33);
    Node &node = programs[number].nodes[static_cast<uint32_t>(record.node >> 1)];
    if (!canBe(*node.step, record.name))
      continue;
    const double begin = 1e-9 * static_cast<double>(static_cast<int64_t>(record.begin - origin)),
                 end = begin + 1e-9 * static_cast<double>(record.end - record.begin);
    node.seconds += end - begin;
    node.calls += record.node & 1;
    runs.push_back({.step = node.step,
                    .program = number,
                    .run = launch,
                    .begin = begin,
                    .end = end,
                    .stream = record.stream,
                    .kernel = std::move(record.name),
                    .grid = record.grid,
                    .block = record.block,
                    .copied = record.copied});
  }
}

} // namespace hydra::runtime::cuda
