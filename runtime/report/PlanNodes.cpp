// Times of inner blocks are shares of the time that the block of the program's own list has.
#include "runtime/report/PlanNodes.h"

#include "runtime/report/PredictedTime.h"

#include <fmt/core.h>

namespace hydra::report {

using namespace planfile;

namespace {

using Blocks = flatbuffers::Vector<flatbuffers::Offset<Block>>;

class NodeWriter {
public:
  std::vector<PlanNode> nodes;

  void add(const PlanNode &node) {
    nodes.push_back(node);
    PlanNode inner = node;
    ++inner.depth;
    if (const Loop *loop = node.block->node_as_Loop()) {
      inner.times *= static_cast<double>(loop->count());
      addList(*loop->blocks(), inner);
    } else if (const Switch *choice = node.block->node_as_Switch()) {
      addCases(*choice, inner);
    }
  }

private:
  /// `inner` has what all blocks of the list share: the place in front of theirs, and their time.
  void addList(const Blocks &blocks, const PlanNode &inner) {
    const double sum = predictedMicroseconds(blocks);
    const double scale = sum > 0 ? (inner.end - inner.begin) / sum : 0;
    double now = inner.begin;
    for (uint32_t i = 0; i < blocks.size(); ++i) {
      PlanNode node = inner;
      node.block = blocks.Get(i);
      node.place = fmt::format("{}.{}", inner.place, i);
      node.begin = now;
      now += scale * predictedMicroseconds(*node.block);
      node.end = now;
      add(node);
    }
  }

  void addCases(const Switch &choice, const PlanNode &inner) {
    uint32_t longest = 0;
    double most = 0;
    for (uint32_t i = 0; i < choice.cases()->size(); ++i) {
      const double time = predictedMicroseconds(*choice.cases()->Get(i)->blocks());
      if (time > most) {
        most = time;
        longest = i;
      }
    }
    for (uint32_t i = 0; i < choice.cases()->size(); ++i) {
      PlanNode one = inner;
      one.place = fmt::format("{}.{}", inner.place, i);
      if (i != longest) {
        one.times = 0;
        one.end = one.begin;
      }
      addList(*choice.cases()->Get(i)->blocks(), one);
    }
  }
};

} // namespace

std::vector<PlanNode> nodesOf(const Plan &plan, const Program &program) {
  const support::StreamTimeline timeline = predictedTimeline(plan, program);
  NodeWriter writer;
  for (uint32_t i = 0; i < program.blocks()->size(); ++i)
    writer.add({.block = program.blocks()->Get(i),
                .place = fmt::format("{}", i),
                .top = i,
                .begin = timeline.blocks[i].begin,
                .end = timeline.blocks[i].end});
  return std::move(writer.nodes);
}

} // namespace hydra::report
