// From the blocks of a program to the nodes that a GPU is given.
#include "runtime/cuda/NodeBuilder.h"

#include "runtime/plan/Actions.h"
#include "runtime/support/Shown.h"

#include <algorithm>

namespace hydra::runtime::cuda {

using namespace hydra::planfile;
using support::fail;
using support::shown;

/// Streams and events of a block, of which the nodes from `first` on are made: the first waits,
/// the last signals.
static void order(CudaProgram &program, size_t first, const Block &block) {
  size_t last = first;
  for (size_t i = first; i < program.nodes.size(); i = program.nodes[i].end) {
    program.nodes[i].stream = block.stream();
    last = i;
  }
  if (block.waits())
    program.nodes[first].waits.assign(block.waits()->begin(), block.waits()->end());
  program.nodes[last].signals = block.signals();
}

CudaProgram NodeBuilder::build(const Program &program) {
  CudaProgram prepared;
  prepared.name = program.name()->str();
  addBlocks(prepared, *program.blocks(), {});
  return prepared;
}

void NodeBuilder::addBlocks(CudaProgram &program, const BlockList &blocks, const Shifts &shifts) {
  for (const Block *block : blocks) {
    const size_t first = program.nodes.size();
    if (const Step *step = block->node_as_Step())
      addStep(program, *step, shifts);
    else if (const Loop *loop = block->node_as_Loop())
      addLoop(program, *loop, shifts);
    else
      addSwitch(program, *block, shifts);
    order(program, first, *block);
  }
}

/// A graph has no loops: iterations follow each other.
void NodeBuilder::addLoop(CudaProgram &program, const Loop &loop, const Shifts &shifts) {
  for (uint64_t i = 0; i < loop.count(); ++i) {
    Shifts moved = shifts;
    for (const LoopStride *stride : *loop.strides())
      moved[stride->tensor()] += static_cast<int64_t>(i) * stride->bytes();
    addBlocks(program, *loop.blocks(), moved);
  }
}

void NodeBuilder::addSwitch(CudaProgram &program, const Block &block, const Shifts &shifts) {
  const Switch &choice = *block.node_as_Switch();
  if (choice.kernel() < 0)
    fail("a switch has no kernel that sets it in a graph");
  const size_t number = program.nodes.size();
  Node node;
  node.choice = &choice;
  node.function = functions[static_cast<size_t>(choice.kernel())];
  node.args.push_back(addressOf(choice.selector()));
  program.nodes.push_back(std::move(node));
  for (const Case *entry : *choice.cases()) {
    const size_t first = program.nodes.size();
    addBlocks(program, *entry->blocks(), shifts);
    program.nodes[number].cases.emplace_back(first, program.nodes.size());
  }
  program.nodes[number].end = program.nodes.size();
}

void NodeBuilder::addStep(CudaProgram &program, const Step &step, const Shifts &shifts) {
  Node node;
  node.step = &step;
  for (const Arg *arg : *step.args()) {
    const auto shift = shifts.find(arg->tensor());
    node.args.push_back(addressOf(arg->tensor()) +
                        (shift == shifts.end() ? 0 : static_cast<CUdeviceptr>(shift->second)));
  }
  if (const auto *launch = actionOf(step).as<Launch>()) {
    node.function = functions[launch->kernel()];
    node.kernel = plan.kernels()->Get(launch->kernel());
    node.blocks = launch->blocks() > 0 ? launch->blocks() : node.kernel->grid()->x();
    node.instances =
        static_cast<uint32_t>(node.args.size() / std::max(1u, node.kernel->arg_count()));
    if (node.kernel->instances() > 1) // the whole table is a parameter
      node.args.resize(size_t{node.kernel->instances()} * node.kernel->arg_count());
  } else {
    node.call = &library.prepare(CallSite(plan, step), node.args);
  }
  node.end = program.nodes.size() + 1;
  program.nodes.push_back(std::move(node));
}

} // namespace hydra::runtime::cuda
