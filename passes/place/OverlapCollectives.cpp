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
  int64_t after; ///< the last block that must stand before it; -1: none
  double ready;  ///< when that ends
  double need;   ///< when the first block begins that needs what it brings
  double seconds;
  uint64_t gathered; ///< bytes of what it brings, of a gather
  double start = 0;

  int64_t block() const { return blocks.front(); }
};

/// Moves the gathers of one program.
class GatherSchedule {
public:
  GatherSchedule(plan::ProgramOp program, const Roofline &rates, uint64_t ahead)
      : table(program) {
    for (size_t i = 0; i < table.operations.size(); ++i)
      if (table.meetsRanks(i) && !addToChain(static_cast<int64_t>(i), rates))
        exchanges.push_back(describe(static_cast<int64_t>(i), rates));
    uint64_t largest = 0;
    for (const Exchange &exchange : exchanges)
      largest = std::max(largest, exchange.gathered);
    mostBytes = ahead * largest + largest / kSmall;
  }

  /// Gathers that now stand earlier.
  unsigned run() {
    chooseStarts();
    llvm::DenseSet<int64_t> moved;
    for (auto [number, exchange] : llvm::enumerate(exchanges)) {
      int64_t place = exchange.gathered > 0 ? placeOf(number) : exchange.block();
      while (moved.contains(place)) // that gather stands earlier now, maybe before what this one needs
        ++place;
      if (place >= exchange.block())
        continue;
      for (int64_t block : exchange.blocks)
        move(table.operations[block], table.operations[place]);
      moved.insert(exchange.blocks.begin(), exchange.blocks.end());
    }
    return moved.size();
  }

private:
  Exchange describe(int64_t block, const Roofline &rates) const {
    Exchange exchange;
    exchange.blocks = {block};
    exchange.after = table.lastConflict(block);
    exchange.ready = exchange.after < 0 ? 0 : table.end[exchange.after];
    const auto first = static_cast<size_t>(table.firstConflict(block));
    exchange.need = first < table.begin.size() ? table.begin[first] : table.time;
    exchange.gathered = 0;
    if (auto gather = dyn_cast<plan::AllGatherOp>(table.operations[block]))
      exchange.gathered = plan::extentBytes(cast<MemRefType>(gather.getY().getType()));
    exchange.seconds = cast<plan::StepInterface>(table.operations[block]).seconds(rates);
    return exchange;
  }

  /// Whether a block is a gather of what the last of other gathers brings, for it alone: it then
  /// has become one of these.
  bool addToChain(int64_t block, const Roofline &rates) {
    if (!isa<plan::AllGatherOp>(table.operations[block]))
      return false;
    const Exchange next = describe(block, rates);
    for (Exchange &chain : llvm::reverse(exchanges)) {
      const int64_t last = chain.blocks.back();
      if (last != next.after)
        continue;
      if (chain.gathered == 0 || table.firstConflict(last) != block)
        return false;
      chain.blocks.push_back(block);
      chain.need = next.need;
      chain.seconds += next.seconds;
      chain.gathered += next.gathered;
      return true;
    }
    return false;
  }

  /// The links take one exchange at a time. What waits for values of the step goes as soon as they are
  /// there; in the time that this leaves, from the last need to the first, gathers begin as late as they
  /// can.
  void chooseStarts() {
    SmallVector<Exchange *> gathers;
    double free = 0;
    for (Exchange &exchange : exchanges) {
      if (exchange.gathered > 0 && exchange.ready + kSlack * exchange.seconds <= exchange.need) {
        gathers.push_back(&exchange);
        continue;
      }
      exchange.start = std::max(free, exchange.ready);
      free = exchange.start + kSlack * exchange.seconds;
      busy[exchange.start] = free;
    }
    llvm::stable_sort(gathers,
                      [](const Exchange *a, const Exchange *b) { return a->need < b->need; });
    for (Exchange *gather : llvm::reverse(gathers)) {
      const double seconds = kSlack * gather->seconds;
      gather->start = std::max(gather->ready, latestStart(gather->need, seconds));
      busy[gather->start] = gather->start + seconds;
    }
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

  /// The block before which a gather is to stand: the first that begins at its start or later, while
  /// what is gathered and not needed yet takes no more bytes than it may.
  int64_t placeOf(size_t number) const {
    const Exchange &exchange = exchanges[number];
    double start = exchange.start;
    uint64_t waiting = exchange.gathered;
    for (size_t i = number; i-- > 0 && start < exchange.need;) {
      waiting += exchanges[i].gathered;
      if (waiting > mostBytes)
        start = std::max(start, exchanges[i].need);
    }
    if (exchange.gathered > mostBytes)
      return exchange.block();
    const auto first = llvm::lower_bound(table.begin, start);
    return std::max<int64_t>(first - table.begin.begin(), exchange.after + 1);
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
  std::map<double, double> busy;   ///< when the links are: begin and end
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
