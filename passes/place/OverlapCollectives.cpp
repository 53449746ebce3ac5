// hydra-overlap-collectives: what ranks gather is gathered before it is needed.
#include "dialects/hydra/Target.h"
#include "passes/Passes.h"
#include "passes/place/ProgramBlocks.h"

#include <map>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "passes/Passes.h.inc"

namespace {

/// By how much exchanges may take longer than predicted.
constexpr double kSlack = 1.2;

/// Gathers of so small a part of the largest count little: norms beside the matrices of a layer.
constexpr uint64_t kSmall = 8;

/// One exchange between ranks; or gathers of which each takes what the one before brings, and that
/// nothing else reads: they go together.
struct Exchange {
  llvm::SmallVector<int64_t, 2> blocks; ///< in their order
  int64_t after;                        ///< the last block that must stand before it; -1: none
  int64_t behind; ///< the first that must stand behind it; the number of blocks: none
  double ready;   ///< when `after` ends
  double need;    ///< when `behind` begins
  double seconds;
  uint64_t gathered; ///< bytes of what it brings, of a gather
  bool waits = false; ///< has time to spare, and begins as late as it can
  double start = 0;
  int64_t earliest = 0; ///< of the places that a gather may have
  int64_t place = 0;    ///< of a gather: the block before which it is to stand

  int64_t block() const { return blocks.front(); }
  double slackSeconds() const { return kSlack * seconds; }
};

/// Moves the gathers of one program.
class GatherSchedule {
public:
  GatherSchedule(plan::ProgramOp program, const Roofline &rates, uint64_t ahead)
      : table(program) {
    for (size_t i = 0; i < table.operations.size(); ++i)
      if (table.meetsRanks(i) && !addToChain(static_cast<int64_t>(i), rates))
        exchanges.push_back(describe({static_cast<int64_t>(i)}, rates));
    uint64_t largest = 0;
    for (Exchange &exchange : exchanges) {
      largest = std::max(largest, exchange.gathered);
      if (exchange.gathered == 0)
        continue;
      gathers.push_back(&exchange);
      for (int64_t block : exchange.blocks)
        gatherAt[block] = &exchange;
    }
    llvm::stable_sort(gathers,
                      [](const Exchange *a, const Exchange *b) { return a->need < b->need; });
    mostBytes = ahead * largest + largest / kSmall;
  }

  /// Gathers that now stand elsewhere.
  unsigned run() {
    chooseStarts();
    // Those of one place go in the order in which they are needed.
    std::map<int64_t, SmallVector<int64_t>> groups;
    for (size_t number = 0; number < gathers.size(); ++number) {
      choosePlace(number);
      groups[nextOther(gathers[number]->place)].append(gathers[number]->blocks);
    }
    unsigned moved = 0;
    for (const auto &[place, group] : groups)
      moved += gatherBefore(place, group);
    return moved;
  }

private:
  /// Of gathers that take what the one before brings, or of one exchange.
  Exchange describe(ArrayRef<int64_t> blocks, const Roofline &rates) const {
    Exchange exchange;
    exchange.blocks.assign(blocks.begin(), blocks.end());
    exchange.after = -1;
    exchange.behind = static_cast<int64_t>(table.operations.size());
    exchange.seconds = 0;
    exchange.gathered = 0;
    for (int64_t block : blocks) {
      forConflicts(block, [&](int64_t other) {
        if (llvm::is_contained(blocks, other))
          return;
        if (other < block)
          exchange.after = std::max(exchange.after, other);
        else
          exchange.behind = std::min(exchange.behind, other);
      });
      if (auto gather = dyn_cast<plan::AllGatherOp>(table.operations[block]))
        exchange.gathered += plan::extentBytes(cast<MemRefType>(gather.getY().getType()));
      exchange.seconds += cast<plan::StepInterface>(table.operations[block]).seconds(rates);
    }
    exchange.ready = exchange.after < 0 ? 0 : table.end[exchange.after];
    exchange.need = isNeeded(exchange) ? table.begin[exchange.behind] : table.time;
    return exchange;
  }

  /// Calls `visit` with every block that must keep its order with `block`.
  void forConflicts(int64_t block, llvm::function_ref<void(int64_t)> visit) const {
    for (const auto &[buffer, use] : table.uses[block])
      for (const BlockUse &other : table.history.find(buffer)->second)
        if (other.block != block && other.conflicts(use))
          visit(other.block);
  }

  /// Whether the program needs what an exchange brings, and not the next step alone.
  bool isNeeded(const Exchange &exchange) const {
    return exchange.behind < static_cast<int64_t>(table.operations.size());
  }

  /// Whether a block is a gather of what the last of other gathers brings, for it alone: it then
  /// has become one of these.
  bool addToChain(int64_t block, const Roofline &rates) {
    if (!isa<plan::AllGatherOp>(table.operations[block]))
      return false;
    const int64_t after = table.lastConflict(block);
    for (Exchange &chain : llvm::reverse(exchanges)) {
      const int64_t last = chain.blocks.back();
      if (last != after)
        continue;
      if (chain.gathered == 0 || table.firstConflict(last) != block)
        return false;
      SmallVector<int64_t, 2> blocks = chain.blocks;
      blocks.push_back(block);
      chain = describe(blocks, rates);
      return true;
    }
    return false;
  }

  /// The links take one exchange at a time. What waits for values of the step goes as soon as they
  /// are there, and so does a gather without time to spare, at whose reader all that computes waits
  /// for the links. In the time that this leaves, from the last need to the first, gathers begin as
  /// late as they can, and end before one that is needed later begins.
  void chooseStarts() {
    double free = 0;
    for (Exchange &exchange : exchanges) {
      exchange.waits = exchange.gathered > 0 && isNeeded(exchange) &&
                       exchange.ready + exchange.slackSeconds() <= exchange.need;
      if (exchange.waits)
        continue;
      exchange.start = std::max(free, exchange.ready);
      free = exchange.start + exchange.slackSeconds();
      busy[exchange.start] = free;
      if (exchange.gathered > 0 && free > exchange.need)
        free = busyUntil(exchange.need);
    }
    double next = table.time;
    for (Exchange *gather : llvm::reverse(gathers)) {
      if (!gather->waits)
        continue;
      const double end = std::min(gather->need, next);
      gather->start = std::max(gather->ready, latestStart(end, gather->slackSeconds()));
      next = gather->start;
    }
    // Where time is short, one begins as the one before ends, but in front of an exchange that it
    // would delay only if it would be late behind that.
    free = 0;
    for (Exchange *gather : gathers) {
      if (!gather->waits)
        continue;
      const double from = std::min(std::max(gather->start, free), gather->need);
      gather->start = firstStart(from, gather->slackSeconds());
      if (gather->start + gather->seconds > gather->need)
        gather->start = from;
      free = std::min(gather->start + gather->slackSeconds(), gather->need);
    }
  }

  /// The links are free then: no time of what computes passes until they are.
  double busyUntil(double time) {
    busy.erase(busy.upper_bound(time), busy.end());
    if (!busy.empty())
      busy.rbegin()->second = std::min(busy.rbegin()->second, time);
    return time;
  }

  /// When the links are free for so long, before `end`.
  double latestStart(double end, double seconds) const {
    auto next = busy.lower_bound(end);
    while (next != busy.begin()) {
      --next;
      if (next->second <= end - seconds)
        break;
      end = std::min(end, next->first);
    }
    return end - seconds;
  }

  /// From `begin` on.
  double firstStart(double begin, double seconds) const {
    for (const auto &[from, until] : busy)
      if (until > begin && from < begin + seconds)
        begin = until;
    return begin;
  }

  /// The place of a gather, where those that are needed earlier have theirs: before the first block
  /// that begins at its start or later, while what is gathered and not needed yet takes no more
  /// bytes than it may. One that has no time to spare does not move later, and one that only the
  /// next step needs stays. None goes before one that is needed earlier and could begin by then.
  void choosePlace(size_t number) {
    Exchange &gather = *gathers[number];
    gather.earliest = earliestPlace(gather);
    gather.place = gather.block();
    if (!isNeeded(gather))
      return;
    double start = gather.start;
    uint64_t waiting = gather.gathered;
    for (size_t i = number; i-- > 0 && start < gather.need;) {
      waiting += gathers[i]->gathered;
      if (waiting > mostBytes)
        start = std::max(start, gathers[i]->need);
    }
    if (gather.gathered <= mostBytes)
      gather.place = std::max(gather.earliest, firstBlockAt(start));
    else // it alone is too much to wait
      gather.place = std::max(gather.place, firstBlockAt(gather.need));
    gather.place = std::min(gather.place, gather.waits ? gather.behind : gather.block());
    while (const Exchange *earlier = passedBy(number))
      gather.place = earlier->place; // now others could begin by then
  }

  /// A gather that is needed before the one of this number, could begin by then, and stands behind
  /// it.
  const Exchange *passedBy(size_t number) const {
    const Exchange &gather = *gathers[number];
    for (const Exchange *earlier : ArrayRef(gathers).take_front(number))
      if (earlier->need < gather.need && earlier->earliest <= gather.place &&
          earlier->place > gather.place)
        return earlier;
    return nullptr;
  }

  int64_t firstBlockAt(double time) const {
    return llvm::lower_bound(table.begin, time) - table.begin.begin();
  }

  /// Behind all that must stand before a gather. Gathers among that have their places.
  int64_t earliestPlace(const Exchange &gather) const {
    int64_t earliest = 0;
    for (int64_t block : gather.blocks)
      forConflicts(block, [&](int64_t other) {
        if (other > block || llvm::is_contained(gather.blocks, other))
          return;
        auto moves = gatherAt.find(other);
        earliest = std::max(earliest, moves == gatherAt.end() ? other + 1 : moves->second->place);
      });
    return earliest;
  }

  /// The first block from `block` on that is no gather; the number of blocks where there is none.
  int64_t nextOther(int64_t block) const {
    while (gatherAt.contains(block))
      ++block;
    return block;
  }

  /// Has the blocks of gathers, in this order, stand before a block that is none. How many stood
  /// before another one.
  unsigned gatherBefore(int64_t place, ArrayRef<int64_t> group) const {
    SmallVector<int64_t> present;
    for (int64_t block = place; block-- > 0 && gatherAt.contains(block);)
      present.insert(present.begin(), block);
    if (group == ArrayRef<int64_t>(present))
      return 0;
    for (int64_t block : group) {
      Operation *step = table.operations[block];
      if (place < static_cast<int64_t>(table.operations.size()))
        move(step, table.operations[place]);
      else
        step->moveBefore(step->getBlock(), step->getBlock()->end());
    }
    return llvm::count_if(group, [&](int64_t block) { return nextOther(block) != place; });
  }

  /// With the buffers and views that it names.
  static void move(Operation *step, Operation *before) {
    for (Value operand : step->getOperands())
      if (Operation *named = operand.getDefiningOp();
          named->getBlock() == before->getBlock() && before->isBeforeInBlock(named))
        move(named, before);
    step->moveBefore(before);
  }

  ProgramBlocks table;
  uint64_t mostBytes; ///< that may wait for who needs them
  SmallVector<Exchange> exchanges; ///< in the order of the program
  SmallVector<Exchange *> gathers; ///< in the order in which they are needed
  llvm::DenseMap<int64_t, Exchange *> gatherAt; ///< by block
  std::map<double, double> busy; ///< when the links are, but for gathers that wait: begin and end
};

struct OverlapCollectives : impl::OverlapCollectivesBase<OverlapCollectives> {
  using OverlapCollectivesBase::OverlapCollectivesBase;

  void runOnOperation() override {
    const std::optional<Roofline> rates = rooflineOf(targetOf(getOperation()));
    if (!rates)
      return;
    for (auto module : getOperation().getOps<plan::PlanModuleOp>())
      for (auto program : module.getBody().getOps<plan::ProgramOp>())
        moved += GatherSchedule(program, *rates, ahead).run();
  }
};

} // namespace
} // namespace hydra
