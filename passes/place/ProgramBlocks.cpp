// The blocks of a program of a plan: what each touches, and when it runs.
#include "passes/place/ProgramBlocks.h"

#include "dialects/hydra/Target.h"

using namespace mlir;

namespace hydra {

namespace {

/// Idle time of fewer launches is not worth the wait of one stream for another.
constexpr double kLeastIdle = 32;

/// Of a block that runs alone: how long, and that times the part of the device that it occupies.
struct DeviceTime {
  double seconds = 0, occupied = 0;
};

/// How many blocks a step runs in, where its kernel says so.
std::optional<int64_t> blocksOf(Operation *step, SymbolTableCollection &symbols) {
  auto launch = dyn_cast<plan::LaunchOp>(step);
  if (!launch)
    return std::nullopt;
  auto kernel = symbols.lookupNearestSymbolFrom<plan::KernelOp>(launch, launch.getKernelAttr());
  if (!kernel || !kernel.getLaunch())
    return std::nullopt;
  const ArrayRef<int64_t> sizes = kernel.getLaunch()->take_front(3);
  return sizes[0] * sizes[1] * sizes[2] * kernel.getInstances().value_or(1);
}

/// A step occupies the whole device unless it has fewer blocks than that has multiprocessors: then
/// it runs at the rates of so many blocks.
DeviceTime timeOf(Operation *block, const Roofline &rates, SymbolTableCollection &symbols) {
  if (auto step = dyn_cast<plan::StepInterface>(block)) {
    TargetAttr target = targetOf(block);
    const auto all = static_cast<double>(target.getMultiprocessors());
    const auto own =
        static_cast<double>(blocksOf(block, symbols).value_or(target.getMultiprocessors()));
    const double seconds = step.seconds(rates);
    if (own >= all || target.rate(kBlockFlops) == 0 || target.rate(kBlockBandwidth) == 0)
      return {seconds, seconds};
    const double ofBlocks = (static_cast<double>(step.getFlops()) / target.rate(kBlockFlops) +
                             static_cast<double>(step.getBytes()) / target.rate(kBlockBandwidth)) /
                            own;
    const double longer = std::max(seconds, ofBlocks);
    return {longer, longer * own / all};
  }
  // All iterations of a loop; of a switch the case with the most work.
  DeviceTime longest;
  for (Region &region : block->getRegions()) {
    DeviceTime sum;
    for (Operation &inner : region.getOps())
      if (isa<plan::BlockInterface>(inner)) {
        const DeviceTime one = timeOf(&inner, rates, symbols);
        sum.seconds += one.seconds;
        sum.occupied += one.occupied;
      }
    if (sum.seconds > longest.seconds)
      longest = sum;
  }
  if (auto loop = dyn_cast<plan::LoopOp>(block)) {
    longest.seconds *= static_cast<double>(loop.getCount());
    longest.occupied *= static_cast<double>(loop.getCount());
  }
  return longest;
}

} // namespace

ProgramBlocks::ProgramBlocks(plan::ProgramOp program) {
  const std::optional<Roofline> rates = rooflineOf(targetOf(program));
  SymbolTableCollection symbols;
  for (Operation &op : program.getBody().front()) {
    if (!isa<plan::BlockInterface>(op))
      continue;
    operations.push_back(&op);
    begin.push_back(time);
    // What moves bytes takes time of the links, not of the device.
    DeviceTime own;
    if (!linkOf(operations.size() - 1))
      own = rates ? timeOf(&op, *rates, symbols) : DeviceTime{1, 1};
    time += own.seconds;
    end.push_back(time);
    const double left = own.seconds - own.occupied;
    idle.push_back(rates && left >= kLeastIdle * rates->launchSeconds ? left : 0);
  }
  uses.resize(operations.size());
  for (auto [i, op] : llvm::enumerate(operations))
    for (const plan::BufferUse &use : plan::usesOf(op)) {
      plan::BufferOp buffer = plan::placeOf(use.value).buffer;
      BlockUse entry{static_cast<int64_t>(i), plan::bytesOf(use.value), use.writes};
      if (isa<plan::LoopOp>(op))
        entry.bytes = {0, INT64_MAX};
      uses[i].emplace_back(buffer, entry);
      history[buffer].push_back(entry);
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

bool ProgramBlocks::conflict(size_t a, size_t b) const {
  for (const auto &[buffer, use] : uses[a])
    for (const BlockUse &other : history.find(buffer)->second)
      if (other.block == static_cast<int64_t>(b) && other.conflicts(use))
        return true;
  return false;
}

} // namespace hydra
