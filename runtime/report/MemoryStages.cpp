// Stages and events from live pieces.
#include "runtime/report/MemoryStages.h"

#include "runtime/report/PlanNodes.h"
#include "runtime/report/PredictedTime.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace hydra::report {

using namespace planfile;

namespace {

/// For each block what is live while it runs, and of that what is still live behind it.
struct LiveBytes {
  std::vector<uint64_t> during, behind;

  explicit LiveBytes(const LiveMemory &memory) : during(memory.blocks), behind(memory.blocks) {
    std::vector<int64_t> begin(memory.blocks + 1), end(memory.blocks + 1);
    for (const LivePiece &piece : memory.pieces) {
      begin[piece.first] += static_cast<int64_t>(piece.end - piece.begin);
      end[piece.last] += static_cast<int64_t>(piece.end - piece.begin);
    }
    int64_t live = 0;
    for (uint32_t block = 0; block < memory.blocks; ++block) {
      live += begin[block];
      during[block] = static_cast<uint64_t>(live);
      live -= end[block];
      behind[block] = static_cast<uint64_t>(live);
    }
  }
};

uint64_t batchBytes(const Plan &plan, const Program &program, const LiveMemory &memory) {
  uint64_t bytes = 0;
  for (const LivePiece &piece : memory.pieces)
    for (const Input *input : *program.inputs())
      if (piece.first == 0 && piece.tensor == input->tensor() &&
          plan.tensors()->Get(piece.tensor)->segment() == SegmentKind::transient)
        bytes += piece.end - piece.begin;
  return bytes;
}

} // namespace

std::vector<MemoryStage> memoryStages(const Plan &plan, const Program &program,
                                      const LiveMemory &memory) {
  const CategoryBytes kept = persistentMemory(plan);
  const uint64_t model = std::accumulate(kept.begin(), kept.end(), uint64_t{0});
  const uint64_t batch = model + batchBytes(plan, program, memory);
  std::vector<MemoryStage> stages = {{"model", -1, model, model}, {"batch", -1, batch, batch}};
  std::map<Phase, int64_t> last;
  for (const PlanNode &node : nodesOf(plan, program))
    if (const Step *step = node.block->node_as_Step())
      last[step->phase()] = node.top;
  std::vector<std::pair<int64_t, Phase>> ends;
  for (const auto &[phase, block] : last)
    ends.emplace_back(block, phase);
  std::sort(ends.begin(), ends.end());
  const LiveBytes live(memory);
  int64_t next = 0;
  for (const auto &[block, phase] : ends) {
    MemoryStage stage{EnumNamePhase(phase), block, model + live.behind[block], 0};
    for (; next <= block; ++next)
      stage.peak = std::max(stage.peak, model + live.during[next]);
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::vector<MemoryEvent> memoryEvents(const Program &program, const LiveMemory &memory) {
  std::vector<double> begin(memory.blocks + 1, 0);
  for (flatbuffers::uoffset_t i = 0; i < program.blocks()->size(); ++i)
    begin[i + 1] = begin[i] + predictedMicroseconds(*program.blocks()->Get(i));
  std::vector<MemoryEvent> events;
  for (const LivePiece &piece : memory.pieces) {
    const auto bytes = static_cast<int64_t>(piece.end - piece.begin);
    events.push_back({begin[piece.first], bytes, piece.tensor});
    events.push_back({begin[piece.last + 1], -bytes, piece.tensor});
  }
  std::stable_sort(events.begin(), events.end(), [](const MemoryEvent &a, const MemoryEvent &b) {
    return std::pair(a.microseconds, a.bytes > 0) < std::pair(b.microseconds, b.bytes > 0);
  });
  return events;
}

} // namespace hydra::report
