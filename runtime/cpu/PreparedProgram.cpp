// Flattens the tree of blocks at load, and walks the flat list at run time.
#include "runtime/cpu/PreparedProgram.h"

#include "runtime/plan/Poison.h"
#include "runtime/support/Integers.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace hydra::runtime;
using namespace hydra::planfile;

char *Resolved::addressOf(uint32_t tensor) const {
  const Tensor &entry = *plan.tensors()->Get(tensor);
  return segments[static_cast<size_t>(entry.segment())] + entry.offset();
}

using BlockList = flatbuffers::Vector<flatbuffers::Offset<Block>>;

struct PreparedProgram::Builder {
  const Resolved &resolved;
  PreparedProgram &program;
  // Of each address, the tensor it belongs to; loops look here for what they shift.
  std::vector<uint32_t> tensors = {};

  uint32_t addAddress(uint32_t tensor) {
    program.addresses.push_back(resolved.addressOf(tensor));
    tensors.push_back(tensor);
    return static_cast<uint32_t>(program.addresses.size() - 1);
  }

  void addStep(const Step &step) {
    Node node{Node::Kind::Launch, static_cast<uint32_t>(program.nodes.size() + 1)};
    node.step = &step;
    node.addresses = static_cast<uint32_t>(program.addresses.size());
    for (const Arg *arg : *step.args())
      addAddress(arg->tensor());
    if (const Launch *launch = step.action_as_Launch()) {
      node.kernel = resolved.kernels[launch->kernel()];
      node.rows = launch->rows();
      node.grain = launch->grain();
    } else {
      node.kind = Node::Kind::Call;
      node.call = resolved.prepare(CallSite(resolved.plan, step), resolved.resources);
      program.scratchBytes = std::max(program.scratchBytes, node.call->scratchBytesPerWorker());
    }
    program.nodes.push_back(std::move(node));
  }

  void addLoop(const Loop &loop) {
    const auto index = static_cast<uint32_t>(program.nodes.size());
    program.nodes.push_back({Node::Kind::Loop, 0});
    const size_t firstAddress = program.addresses.size();
    addBlocks(*loop.blocks());
    Node &node = program.nodes[index];
    node.end = static_cast<uint32_t>(program.nodes.size());
    node.count = loop.count();
    node.first = static_cast<uint32_t>(program.shifts.size());
    for (size_t i = firstAddress; i < program.addresses.size(); ++i) {
      for (const LoopStride *stride : *loop.strides())
        if (stride->tensor() == tensors[i] && stride->bytes() != 0)
          program.shifts.push_back({static_cast<uint32_t>(i), stride->bytes()});
    }
    node.last = static_cast<uint32_t>(program.shifts.size());
  }

  void addSwitch(const Switch &choice) {
    const auto index = static_cast<uint32_t>(program.nodes.size());
    program.nodes.push_back({Node::Kind::Switch, 0});
    const uint32_t selector = addAddress(choice.selector());
    std::vector<Range> ranges; // switches inside add theirs first
    for (const Case *entry : *choice.cases()) {
      const auto begin = static_cast<uint32_t>(program.nodes.size());
      addBlocks(*entry->blocks());
      ranges.push_back({begin, static_cast<uint32_t>(program.nodes.size())});
    }
    Node &node = program.nodes[index];
    node.end = static_cast<uint32_t>(program.nodes.size());
    node.addresses = selector;
    node.count = static_cast<uint64_t>(choice.divisor());
    node.first = static_cast<uint32_t>(program.cases.size());
    program.cases.insert(program.cases.end(), ranges.begin(), ranges.end());
    node.last = static_cast<uint32_t>(program.cases.size());
  }

  void addBlocks(const BlockList &blocks) {
    for (const Block *block : blocks) {
      if (const Step *step = block->node_as_Step())
        addStep(*step);
      else if (const Loop *loop = block->node_as_Loop())
        addLoop(*loop);
      else
        addSwitch(*block->node_as_Switch());
    }
  }
};

PreparedProgram::PreparedProgram(const Resolved &resolved, const Program &program) {
  Builder builder{resolved, *this};
  builder.addBlocks(*program.blocks());
}

void PreparedProgram::run(ThreadPool &pool, const WorkerScratch &scratch) {
  ++runNumber;
  runRange({0, static_cast<uint32_t>(nodes.size())}, pool, scratch);
}

void PreparedProgram::runRange(Range range, ThreadPool &pool, const WorkerScratch &scratch) {
  for (uint32_t i = range.begin; i < range.end; i = nodes[i].end)
    runNode(nodes[i], i, pool, scratch);
}

void PreparedProgram::runNode(Node &node, uint32_t index, ThreadPool &pool,
                              const WorkerScratch &scratch) {
  using Clock = std::chrono::steady_clock;
  if (node.kind == Node::Kind::Loop)
    return runLoop(node, index, pool, scratch);
  char *const *args = addresses.data() + node.addresses;
  if (node.kind == Node::Kind::Switch) {
    const int64_t scalar = *reinterpret_cast<const int32_t *>(args[0]);
    const auto divisor = static_cast<int64_t>(node.count);
    const int64_t selected = hydra::support::ceilDiv(scalar, divisor);
    if (scalar >= 0 && selected < node.last - node.first)
      runRange(cases[node.first + static_cast<uint32_t>(selected)], pool, scratch);
    return;
  }
  const Clock::time_point begin = profiling ? Clock::now() : Clock::time_point();
  if (node.kind == Node::Kind::Call) {
    if (poison)
      for (unsigned worker = 0; worker < pool.threads(); ++worker)
        std::memset(scratch.of(worker), kPoison, node.call->scratchBytesPerWorker());
    node.call->run(args, pool, scratch);
  } else {
    const int64_t grains = node.rows / node.grain + (node.rows % node.grain != 0);
    pool.parallelFor(grains, [&](int64_t grain, unsigned) {
      const int64_t first = grain * node.grain;
      node.kernel(args, first, first + std::min(node.grain, node.rows - first));
    });
  }
  if (profiling) {
    const Clock::time_point end = Clock::now();
    const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
    node.seconds += seconds(end - begin);
    ++node.calls;
    runs.push_back({.step = node.step,
                    .run = runNumber,
                    .begin = seconds(begin.time_since_epoch()),
                    .end = seconds(end.time_since_epoch()),
                    .kernel = {}});
  }
}

void PreparedProgram::runLoop(const Node &node, uint32_t index, ThreadPool &pool,
                              const WorkerScratch &scratch) {
  const auto shift = [&](int64_t iterations) {
    for (uint32_t s = node.first; s < node.last; ++s)
      addresses[shifts[s].address] += iterations * shifts[s].bytes;
  };
  uint64_t shifted = 0;
  try {
    for (uint64_t i = 0; i < node.count; ++i) {
      runRange({index + 1, node.end}, pool, scratch);
      shift(1);
      ++shifted;
    }
  } catch (...) {
    shift(-static_cast<int64_t>(shifted));
    throw;
  }
  shift(-static_cast<int64_t>(shifted));
}

void PreparedProgram::setProfiling(bool on) {
  profiling = on;
  if (on) {
    runs.clear();
    for (Node &node : nodes) {
      node.calls = 0;
      node.seconds = 0.0;
    }
  }
}

void PreparedProgram::addRuns(uint32_t program, std::vector<StepRun> &all) const {
  for (StepRun run : runs) {
    run.program = program;
    all.push_back(std::move(run));
  }
}

void PreparedProgram::addTimes(uint32_t program, std::vector<StepTime> &times) const {
  for (const Node &node : nodes)
    if (node.step)
      times.push_back({node.step, program, node.calls, node.seconds, node.seconds});
}
