// hydra-plan-memory: offsets of all buffers in the segments of the arena.
#include "dialects/plan/Ordering.h"
#include "passes/Passes.h"

#include "llvm/ADT/BitVector.h"

#include <random>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t kAlignment = 256;

int64_t sizeOf(plan::BufferOp buffer) {
  return llvm::alignTo(plan::extentBytes(cast<MemRefType>(buffer.getType())), kAlignment);
}

/// A transient buffer with the span of blocks, in each list around it, that use it.
struct Item {
  plan::BufferOp buffer;
  int64_t size = 0;
  /// Per enclosing list from the program inwards: first and last block that touches it, for each
  /// stream.
  struct Span {
    Block *list = nullptr;
    SmallVector<int64_t, 2> firsts, lasts; ///< positions; one per stream touched
    int64_t first = 0, last = 0;           ///< positions, for counting live bytes
  };
  SmallVector<Span, 1> spans;
  bool input = false, output = false;
};

/// Live ranges of the transient buffers of one program.
class LiveRanges {
public:
  explicit LiveRanges(plan::ProgramOp program) : program(program) {
    program.walk([&](plan::BufferOp buffer) {
      numbers[buffer] = items.size();
      items.push_back({buffer, sizeOf(buffer), {}, false, false});
    });
    program.walk([&](Operation *op) {
      if (auto input = dyn_cast<plan::InputOp>(op))
        items[numberOf(input.getBuffer())].input = true;
      else if (auto output = dyn_cast<plan::OutputOp>(op)) {
        auto it = numbers.find(plan::placeOf(output.getBuffer()).buffer);
        if (it != numbers.end())
          items[it->second].output = true;
      } else if (isa<plan::StepInterface, plan::SwitchOp>(op)) {
        for (Value v : op->getOperands())
          use(op, v);
      }
    });
  }

  std::vector<Item> &buffers() { return items; }

  /// Of each buffer, all that hold something while it does. Where the steps run one after another,
  /// only buffers whose spans overlap are compared.
  std::vector<llvm::BitVector> conflicts() {
    std::vector<llvm::BitVector> found(items.size(), llvm::BitVector(items.size()));
    auto compare = [&](unsigned i, unsigned j) {
      if (disjoint(items[i], items[j]))
        return;
      found[i].set(j);
      found[j].set(i);
    };
    const bool total = orderOf(&program.getBody().front()).isTotal();
    std::vector<unsigned> spanned, others; // by their spans in the program; with all others
    for (auto [i, item] : llvm::enumerate(items))
      (total && !item.spans.empty() && !item.input && !item.output ? spanned : others).push_back(i);
    for (auto [k, i] : llvm::enumerate(others)) {
      for (unsigned j : ArrayRef(others).drop_front(k + 1))
        compare(i, j);
      for (unsigned j : spanned)
        compare(i, j);
    }
    auto first = [&](unsigned i) { return items[i].spans[0].first; };
    llvm::stable_sort(spanned, [&](unsigned a, unsigned b) { return first(a) < first(b); });
    for (auto [k, i] : llvm::enumerate(spanned))
      for (unsigned j : ArrayRef(spanned).drop_front(k + 1)) {
        if (first(j) > items[i].spans[0].last)
          break;
        compare(i, j);
      }
    return found;
  }

private:
  /// Whether the two never hold something at the same time.
  bool disjoint(const Item &a, const Item &b) {
    if (a.spans.empty() || b.spans.empty())
      return false; // never used by a step: an input or output on its own
    if ((a.input && b.input) || (a.output && b.output))
      return false;
    // The innermost list that both have in common decides.
    size_t depth = 0;
    while (depth + 1 < a.spans.size() && depth + 1 < b.spans.size() &&
           a.spans[depth + 1].list == b.spans[depth + 1].list)
      ++depth;
    const Item::Span &x = a.spans[depth], &y = b.spans[depth];
    if (x.list != y.list)
      return false;
    if (depth + 1 < a.spans.size() && depth + 1 < b.spans.size() && x.first == x.last &&
        y.first == y.last && x.first == y.first)
      return isa<plan::SwitchOp>(orderOf(x.list).blocks()[x.first]); // different cases
    return (!a.output && !b.input && allBefore(x, y)) || (!b.output && !a.input && allBefore(y, x));
  }

  plan::ListOrder &orderOf(Block *list) {
    auto &order = orders[list];
    if (!order)
      order = std::make_unique<plan::ListOrder>(*list);
    return *order;
  }

  unsigned numberOf(Value v) { return numbers.lookup(plan::placeOf(v).buffer); }

  void use(Operation *step, Value v) {
    plan::BufferOp buffer = plan::placeOf(v).buffer;
    auto it = numbers.find(buffer);
    if (it == numbers.end())
      return; // persistent
    Item &item = items[it->second];
    // Lists from the buffer's own outwards; the use lies somewhere inside each.
    SmallVector<Block *> lists;
    for (Block *list = buffer->getBlock(); list; list = list->getParentOp()->getBlock()) {
      lists.push_back(list);
      if (isa<plan::ProgramOp>(list->getParentOp()))
        break;
    }
    std::reverse(lists.begin(), lists.end());
    item.spans.resize(lists.size());
    for (auto [span, list] : llvm::zip(item.spans, lists)) {
      int64_t position = orderOf(list).positionOf(step);
      if (!span.list) {
        span.list = list;
        span.first = span.last = position;
      }
      span.first = std::min(span.first, position);
      span.last = std::max(span.last, position);
      extend(span, position);
    }
  }

  /// Keeps the earliest and latest positions of each stream.
  void extend(Item::Span &span, int64_t position) {
    plan::ListOrder &order = orderOf(span.list);
    auto add = [&](SmallVectorImpl<int64_t> &ends, bool earliest) {
      for (int64_t &end : ends)
        if (end == position ||
            (earliest ? order.before(end, position) : order.before(position, end)))
          return;
        else if (earliest ? order.before(position, end) : order.before(end, position)) {
          end = position;
          return;
        }
      ends.push_back(position);
    };
    add(span.firsts, true);
    add(span.lasts, false);
  }

  bool allBefore(const Item::Span &x, const Item::Span &y) {
    plan::ListOrder &order = orderOf(x.list);
    for (int64_t last : x.lasts)
      for (int64_t first : y.firsts)
        if (!order.before(last, first))
          return false;
    return true;
  }

  plan::ProgramOp program;
  std::vector<Item> items;
  DenseMap<Operation *, unsigned> numbers;
  DenseMap<Block *, std::unique_ptr<plan::ListOrder>> orders;
};

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  using PlanMemoryBase::PlanMemoryBase;

  void runOnOperation() override {
    Builder b(&getContext());
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      int64_t persistent = 0, transient = 0, host = 0;
      for (auto buffer : module.getBody().getOps<plan::BufferOp>()) {
        int64_t &end = buffer.isOnHost() ? host : persistent;
        buffer.setOffset(end);
        end += sizeOf(buffer);
      }
      for (auto program : module.getBody().getOps<plan::ProgramOp>())
        transient = std::max(transient, place(program));
      module.setPersistentBytes(persistent);
      module.setTransientBytes(transient);
      if (host > 0)
        module.setHostBytes(host);
    }
  }

private:
  int64_t place(plan::ProgramOp program) {
    LiveRanges ranges(program);
    std::vector<Item> &items = ranges.buffers();
    const size_t n = items.size();
    std::vector<llvm::BitVector> conflicts =
        reuse ? ranges.conflicts() : std::vector<llvm::BitVector>(n, llvm::BitVector(n, true));
    const int64_t live = maxLive(program, items);
    std::vector<int64_t> best;
    int64_t peak = INT64_MAX;
    // Each attempt takes time quadratic in their number: of very many, fewer are made.
    constexpr size_t kMany = 8192;
    const bool many = n > kMany;
    auto attempt = [&](ArrayRef<unsigned> order) {
      bool improved = false;
      for (Fit fit : {Fit::First, Fit::Best}) {
        if (many && fit == Fit::Best)
          continue;
        std::vector<int64_t> offsets;
        std::optional<int64_t> bytes = assign(items, conflicts, order, fit, peak, offsets);
        if (!bytes)
          continue;
        peak = *bytes;
        best = std::move(offsets);
        improved = true;
      }
      return improved;
    };
    std::vector<unsigned> bestOrder;
    for (Heuristic heuristic :
         {Heuristic::Largest, Heuristic::Longest, Heuristic::InOrder, Heuristic::Area}) {
      if (many && heuristic != Heuristic::InOrder && heuristic != Heuristic::Largest)
        continue;
      std::vector<unsigned> order = orderBy(items, heuristic);
      if (attempt(order))
        bestOrder = order;
    }
    // Where they waste bytes, orders close to the best one often do not. Less than a few pages is
    // not worth the search: a program of small tensors would spend most of its compilation here.
    constexpr double kWasteShare = 0.005, kWasteBytes = 65536;
    constexpr double kWork = 2e9; // pairs of buffers that are looked at
    const double bound = live + std::max(kWasteShare * live, kWasteBytes);
    const int attempts = std::min(4000, static_cast<int>(kWork / (1.0 + double(n) * double(n))));
    std::minstd_rand random; // the same numbers everywhere
    for (int i = 0; reuse && i < attempts && peak > bound; ++i) {
      std::vector<unsigned> order = shaken(bestOrder, items, best, peak, random);
      if (attempt(order))
        bestOrder = order;
    }
    for (unsigned i = 0; i < n; ++i)
      items[i].buffer.setOffset(best[i]);
    program.setTransientBytes(peak);
    program.setLiveBytes(live);
    return peak;
  }

  /// Among the gaps that are large enough: the lowest one, or the smallest.
  enum class Fit { First, Best };
  enum class Heuristic { Largest, Longest, InOrder, Area };

  static int64_t lengthOf(const Item &item) {
    if (item.spans.empty())
      return 1;
    return item.input || item.output ? INT32_MAX : item.spans[0].last - item.spans[0].first + 1;
  }

  static std::vector<unsigned> orderBy(ArrayRef<Item> items, Heuristic heuristic) {
    std::vector<unsigned> order(items.size());
    std::iota(order.begin(), order.end(), 0);
    auto key = [&](unsigned i) -> std::pair<double, int64_t> {
      double size = items[i].size, length = lengthOf(items[i]);
      switch (heuristic) {
      case Heuristic::Largest:
        return {-size, -lengthOf(items[i])};
      case Heuristic::Longest:
        return {-length, -items[i].size};
      case Heuristic::InOrder:
        return {0.0, 0};
      case Heuristic::Area:
        return {-size * length, -items[i].size};
      }
      return {};
    };
    llvm::sort(order, [&](unsigned a, unsigned b) {
      return std::tuple(key(a), a) < std::tuple(key(b), b);
    });
    return order;
  }

  /// The order after some pairs have changed places, and every other time a buffer that reaches the
  /// peak has come earlier.
  static std::vector<unsigned> shaken(std::vector<unsigned> order, ArrayRef<Item> items,
                                      ArrayRef<int64_t> offsets, int64_t peak,
                                      std::minstd_rand &random) {
    std::vector<size_t> highest;
    for (auto [place, item] : llvm::enumerate(order))
      if (offsets[item] + items[item].size == peak)
        highest.push_back(place);
    if (!highest.empty() && random() % 2 == 0) {
      const size_t from = highest[random() % highest.size()], to = random() % (from + 1);
      std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
    }
    const size_t swaps = 1 + random() % 4;
    for (size_t i = 0; i < swaps; ++i) {
      const size_t from = random() % order.size(), to = random() % order.size();
      std::swap(order[from], order[to]);
    }
    return order;
  }

  /// Puts one buffer after another into a gap between those in conflict with it, or behind all of
  /// them; returns the peak, nothing where it would not be below `bound`.
  static std::optional<int64_t> assign(ArrayRef<Item> items, ArrayRef<llvm::BitVector> conflicts,
                                       ArrayRef<unsigned> order, Fit fit, int64_t bound,
                                       std::vector<int64_t> &offsets) {
    struct Placed {
      int64_t begin, end;
      unsigned item;
      bool operator<(const Placed &other) const { return begin < other.begin; }
    };
    std::vector<Placed> placed, near; // by begin
    placed.reserve(items.size());
    offsets.assign(items.size(), -1);
    int64_t peak = 0;
    for (unsigned i : order) {
      // Few conflicts are sorted, many are found among all that are placed.
      constexpr size_t kFew = 16; // so many times fewer
      const llvm::BitVector &conflict = conflicts[i];
      const bool few = conflict.count() * kFew < placed.size();
      if (few) {
        near.clear();
        for (unsigned j : conflict.set_bits())
          if (offsets[j] >= 0)
            near.push_back({offsets[j], offsets[j] + items[j].size, j});
        llvm::sort(near);
      }
      const int64_t size = items[i].size;
      int64_t end = 0, chosen = -1, smallest = INT64_MAX;
      for (const Placed &other : few ? near : placed) {
        if (!few && !conflict.test(other.item))
          continue;
        const int64_t gap = other.begin - end;
        if (gap >= size && gap < smallest) {
          smallest = gap;
          chosen = end;
          if (fit == Fit::First)
            break;
        }
        end = std::max(end, other.end);
      }
      const int64_t begin = chosen < 0 ? end : chosen;
      offsets[i] = begin;
      peak = std::max(peak, begin + size);
      if (peak >= bound)
        return std::nullopt;
      const Placed own{begin, begin + size, i};
      placed.insert(llvm::upper_bound(placed, own), own);
    }
    return peak;
  }

  /// The largest sum of sizes alive at one block (in serial order): below the peak by what
  /// fragmentation costs.
  static int64_t maxLive(plan::ProgramOp program, ArrayRef<Item> items) {
    DenseMap<Block *, SmallVector<const Item *>> own; // by the innermost list that knows them
    for (const Item &item : items)
      own[item.spans.empty() ? &program.getBody().front() : item.spans.back().list].push_back(
          &item);
    return maxLive(program.getBody().front(), own);
  }

  static int64_t maxLive(Block &list, const DenseMap<Block *, SmallVector<const Item *>> &own) {
    const int64_t blocks = llvm::range_size(list.getOperations()) + 1;
    std::vector<int64_t> change(blocks + 1, 0), inner(blocks, 0);
    if (auto known = own.find(&list); known != own.end())
      for (const Item *item : known->second) {
        const bool always = item->spans.empty();
        change[item->input || always ? 0 : item->spans.back().first] += item->size;
        change[(item->output || always ? blocks - 1 : item->spans.back().last) + 1] -= item->size;
      }
    int64_t position = 0;
    for (Operation &op : list) {
      if (!isa<plan::BlockInterface>(op))
        continue;
      for (Region &region : op.getRegions())
        inner[position] = std::max(inner[position], maxLive(region.front(), own));
      ++position;
    }
    int64_t live = 0, most = 0;
    for (int64_t i = 0; i < blocks; ++i)
      most = std::max(most, (live += change[i]) + inner[i]);
    return most;
  }
};

} // namespace
} // namespace hydra
