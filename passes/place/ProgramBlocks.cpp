// The blocks of a program of a plan: what each touches, and when it runs.
#include "passes/place/ProgramBlocks.h"

#include "dialects/hydra/Target.h"

using namespace mlir;

namespace hydra {

static double secondsOf(Operation *block, const Roofline &rates) {
  if (auto step = dyn_cast<plan::StepInterface>(block))
    return step.seconds(rates);
  // All iterations of a loop; of a switch the case with the most work.
  double longest = 0;
  for (Region &region : block->getRegions()) {
    double seconds = 0;
    for (Operation &inner : region.getOps())
      if (isa<plan::BlockInterface>(inner))
        seconds += secondsOf(&inner, rates);
    longest = std::max(longest, seconds);
  }
  auto loop = dyn_cast<plan::LoopOp>(block);
  return loop ? static_cast<double>(loop.getCount()) * longest : longest;
}

ProgramBlocks::ProgramBlocks(plan::ProgramOp program) {
  const std::optional<Roofline> rates = rooflineOf(targetOf(program));
  for (Operation &op : program.getBody().front()) {
    if (!isa<plan::BlockInterface>(op))
      continue;
    operations.push_back(&op);
    begin.push_back(time);
    // What moves bytes takes time of the links, not of the device.
    if (!linkOf(operations.size() - 1))
      time += rates ? secondsOf(&op, *rates) : 1;
    end.push_back(time);
  }
  uses.resize(operations.size());
  for (auto [i, op] : llvm::enumerate(operations))
    for (const plan::BufferUse &use : plan::usesOf(op)) {
      plan::Place place = plan::placeOf(use.value);
      int64_t size = plan::extentBytes(cast<MemRefType>(use.value.getType()));
      BlockUse entry{static_cast<int64_t>(i), place.bytes, place.bytes + size, use.writes};
      if (isa<plan::LoopOp>(op))
        std::tie(entry.begin, entry.end) = std::pair<int64_t, int64_t>(0, INT64_MAX);
      uses[i].emplace_back(place.buffer, entry);
      history[place.buffer].push_back(entry);
    }
}

std::optional<support::Link> ProgramBlocks::linkOf(size_t block) const {
  auto step = dyn_cast<plan::StepInterface>(operations[block]);
  return step ? step.getLink() : std::nullopt;
}

int64_t ProgramBlocks::lastConflict(size_t block) const {
  int64_t last = -1;
  for (const auto &[buffer, use] : uses[block])
    for (const BlockUse &other : history.find(buffer)->second)
      if (other.block < static_cast<int64_t>(block) && other.conflicts(use))
        last = std::max(last, other.block);
  return last;
}

int64_t ProgramBlocks::firstConflict(size_t block) const {
  auto first = static_cast<int64_t>(operations.size());
  for (const auto &[buffer, use] : uses[block])
    for (const BlockUse &other : history.find(buffer)->second)
      if (other.block > static_cast<int64_t>(block) && other.conflicts(use))
        first = std::min(first, other.block);
  return first;
}

} // namespace hydra
