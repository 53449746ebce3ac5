// hydra-batch-copies: copies and fills that do not need each other become one launch.
#include "dialects/plan/KernelExpansion.h"
#include "passes/Passes.h"
#include "passes/place/Batches.h"
#include "passes/place/Sides.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_BATCHCOPIES
#include "passes/Passes.h.inc"

namespace {

/// Arguments of a launch at most: it begins when the last of them is ready.
constexpr size_t kArguments = 64;
/// What moves so few bytes may run so many blocks earlier or later; anything else, so many.
constexpr int64_t kFewBytes = 1 << 20, kFar = 256, kNear = 16;

/// Elements of a buffer as an interval of each digit of their numbers, in a system whose places are
/// `strides`, which divide each other and begin with 1. Nothing where they are more than a box.
std::optional<SmallVector<std::pair<int64_t, int64_t>>> boxOf(MemRefType type, int64_t start,
                                                              ArrayRef<int64_t> strides) {
  SmallVector<std::pair<int64_t, int64_t>> box(strides.size());
  for (size_t i = strides.size(); i-- > 0;) {
    box[i] = {start / strides[i], start / strides[i] + 1};
    start %= strides[i];
  }
  for (auto [size, stride] : llvm::zip(type.getShape(), plan::stridesOf(type))) {
    int64_t count = size;
    for (size_t i = llvm::find(strides, stride) - strides.begin(); count > 1; ++i) {
      auto &[begin, end] = box[i];
      const int64_t radix = i + 1 < strides.size() ? strides[i + 1] / strides[i] : INT64_MAX;
      if (end != begin + 1)
        return std::nullopt;
      if (count <= radix - begin) {
        end = begin + count;
        break;
      }
      if (begin != 0 || count % radix != 0)
        return std::nullopt;
      end = radix;
      count /= radix;
    }
  }
  return box;
}

/// Whether two views of a buffer surely have no element in common, as columns of one matrix.
bool areApart(Value a, Value b) {
  const plan::Place x = plan::placeOf(a), y = plan::placeOf(b);
  auto first = cast<MemRefType>(a.getType()), second = cast<MemRefType>(b.getType());
  if (x.bytes + plan::extentBytes(first) <= y.bytes ||
      y.bytes + plan::extentBytes(second) <= x.bytes)
    return true;
  const int64_t element = elementBytes(first.getElementType());
  if (first.getElementTypeBitWidth() != second.getElementTypeBitWidth() || x.bytes % element ||
      y.bytes % element)
    return false;
  SmallVector<int64_t> strides{1};
  for (MemRefType type : {first, second})
    for (auto [size, stride] : llvm::zip(type.getShape(), plan::stridesOf(type)))
      if (size > 1)
        strides.push_back(stride);
  llvm::sort(strides);
  strides.erase(llvm::unique(strides), strides.end());
  for (size_t i = 0; i < strides.size(); ++i)
    if (strides[i] < 1 || (i > 0 && strides[i] % strides[i - 1]))
      return false;
  auto one = boxOf(first, x.bytes / element, strides),
       other = boxOf(second, y.bytes / element, strides);
  return one && other && llvm::any_of(llvm::zip(*one, *other), [](auto both) {
           const auto &[p, q] = both;
           return p.second <= q.first || q.second <= p.first;
         });
}

/// Batches of the copies and fills of one list: a program, or a case of a switch.
class CopyBatches {
public:
  /// `sides`: of the list's blocks; none: all are of one.
  CopyBatches(Block &list, const DenseSet<Operation *> &moments, ArrayRef<Side> sides)
      : moments(moments), sides(sides) {
    for (Operation &op : list)
      if (isa<plan::BlockInterface>(op))
        addBlock(&op);
  }

  /// Copies and fills that joined another.
  int64_t run() {
    findConflicts();
    SmallVector<size_t> order = llvm::to_vector(moves);
    llvm::stable_sort(order, [&](size_t a, size_t b) { return latest(a) < latest(b); });
    int64_t taken = 0, number = 0;
    for (auto [i, first] : llvm::enumerate(order)) {
      SmallVector<size_t> batch = gather(first, ArrayRef(order).drop_front(i + 1));
      if (batch.size() < 2)
        continue;
      taken += batch.size() - 1;
      mark(batch, number++);
    }
    reorder();
    return taken;
  }

private:
  /// What hydra-assign-streams tells apart, by which side is a variable's; a fill of a value can be
  /// with any.
  enum class Kind { Any, OfValues, FromVariable, ToVariable };
  struct Entry {
    Operation *op;
    SmallVector<plan::BufferUse> uses;
    int64_t bytes = 0; ///< that a copy or fill writes
    Kind kind = Kind::Any;
    /// Where it runs: right before the block of that number, of those that do in this order. What
    /// has not moved runs behind them.
    int64_t place = 0, turn = INT64_MAX;
    SmallVector<size_t> before, behind; ///< of copies and fills: what must keep its order with them
  };
  using Use = std::pair<size_t, const plan::BufferUse *>;

  void addBlock(Operation *op) {
    Entry entry;
    entry.op = op;
    entry.uses = plan::usesOf(op);
    entry.place = blocks.size();
    // Moments come from the host and go back there, one after the other.
    if (isa<plan::CopyOp, plan::FillOp>(op) &&
        llvm::none_of(entry.uses, [&](const plan::BufferUse &use) {
          return moments.contains(plan::placeOf(use.value).buffer);
        })) {
      moves.push_back(blocks.size());
      const auto isValue = [](const plan::BufferUse &use) {
        return plan::placeOf(use.value).buffer.isTransient();
      };
      entry.kind = !isValue(entry.uses.back())    ? Kind::ToVariable
                   : !isValue(entry.uses.front()) ? Kind::FromVariable
                   : isa<plan::CopyOp>(op)        ? Kind::OfValues
                                                  : Kind::Any;
      entry.bytes = bytesOf(entry.uses.back().value.getType());
    }
    blocks.push_back(std::move(entry));
  }

  void findConflicts() {
    DenseMap<Operation *, std::vector<Use>> byBuffer;
    for (auto [number, entry] : llvm::enumerate(blocks))
      for (const plan::BufferUse &use : entry.uses)
        byBuffer[plan::placeOf(use.value).buffer].emplace_back(number, &use);
    for (size_t move : moves)
      for (const plan::BufferUse &own : blocks[move].uses)
        for (const auto &[other, use] : byBuffer[plan::placeOf(own.value).buffer])
          if (other != move && (own.writes || use->writes) &&
              (blocks[other].op->getNumRegions() > 0 || // iterations move buffers
               !areApart(own.value, use->value)))
            (other < move ? blocks[move].before : blocks[move].behind).push_back(other);
  }

  /// Whether a copy or fill can run right before block `place`, behind what does so already.
  bool mayRun(size_t move, int64_t place) const {
    return llvm::all_of(blocks[move].before,
                        [&](size_t other) {
                          const Entry &entry = blocks[other];
                          return entry.turn == INT64_MAX ? entry.place < place
                                                         : entry.place <= place;
                        }) &&
           llvm::all_of(blocks[move].behind, [&](size_t other) {
             const Entry &entry = blocks[other];
             return entry.turn == INT64_MAX ? entry.place >= place : entry.place > place;
           });
  }

  /// The last block before which a copy or fill can run.
  int64_t latest(size_t move) const {
    int64_t place = blocks.size() - 1;
    for (size_t other : blocks[move].behind)
      place = std::min(place, blocks[other].place);
    return place;
  }

  /// The copy or fill and others that can run with it, so many as fit into a launch.
  SmallVector<size_t> gather(size_t first, ArrayRef<size_t> others) {
    SmallVector<size_t> batch;
    if (blocks[first].turn != INT64_MAX)
      return batch; // has moved
    const int64_t own = blocks[first].place, last = latest(first);
    // Where most can run together: in its place, or as late as possible.
    for (int64_t place : {own, std::min(last, own + reach(first))}) {
      if (!mayRun(first, place))
        continue;
      SmallVector<size_t> found{first};
      size_t arguments = blocks[first].uses.size();
      Kind kind = blocks[first].kind;
      for (size_t other : others) {
        const Entry &entry = blocks[other];
        if (entry.turn != INT64_MAX || std::abs(entry.place - place) > reach(other) ||
            (kind != Kind::Any && entry.kind != Kind::Any && entry.kind != kind) ||
            !areBeside(first, other) || arguments + entry.uses.size() > kArguments ||
            !mayRun(other, place) || llvm::any_of(found, [&](size_t member) {
              return llvm::is_contained(entry.before, member) ||
                     llvm::is_contained(entry.behind, member);
            }))
          continue;
        found.push_back(other);
        arguments += entry.uses.size();
        if (kind == Kind::Any)
          kind = entry.kind;
      }
      if (found.size() <= batch.size())
        continue;
      batch = std::move(found);
      chosen = place;
    }
    llvm::sort(batch);
    return batch;
  }

  /// Whether two can be one launch for the streams: one side does not wait for the other.
  bool areBeside(size_t a, size_t b) const { return sides.empty() || sides[a] == sides[b]; }

  int64_t reach(size_t move) const { return blocks[move].bytes <= kFewBytes ? kFar : kNear; }

  /// Moves a batch to where it was found to run, and says that it is one.
  void mark(ArrayRef<size_t> batch, int64_t number) {
    Operation *first = blocks[batch.front()].op;
    std::string path = pathOf(first->getLoc()).str();
    for (size_t move : batch)
      path = commonPath(path, pathOf(blocks[move].op->getLoc()));
    for (size_t move : batch) {
      Entry &entry = blocks[move];
      entry.place = chosen;
      entry.turn = turns++;
      entry.op->setAttr(plan::kTogetherAttr, Builder(entry.op).getI64IntegerAttr(number));
    }
    if (path != pathOf(first->getLoc()))
      first->setLoc(withPath(first->getLoc(), path));
  }

  /// Puts all blocks to their places.
  void reorder() {
    SmallVector<const Entry *> order;
    for (const Entry &entry : blocks)
      order.push_back(&entry);
    llvm::stable_sort(order, [](const Entry *a, const Entry *b) {
      return std::pair(a->place, a->turn) < std::pair(b->place, b->turn);
    });
    Operation *next = nullptr; // what stands behind, from the last on
    for (const Entry *entry : llvm::reverse(order)) {
      if (next && entry->op->getNextNode() != next && entry->turn != INT64_MAX)
        entry->op->moveBefore(next);
      next = entry->op;
    }
    // One launch needs all names where the first stands.
    Operation *first = nullptr;
    for (const Entry *entry : order) {
      Attribute batch = entry->op->getAttr(plan::kTogetherAttr);
      if (!batch)
        continue;
      if (!first || first->getAttr(plan::kTogetherAttr) != batch)
        first = entry->op;
      for (Value operand : entry->op->getOperands())
        moveBefore(operand, first);
    }
  }

  const DenseSet<Operation *> &moments;
  ArrayRef<Side> sides;
  std::vector<Entry> blocks;
  SmallVector<size_t> moves; ///< blocks that are copies or fills
  int64_t chosen = 0, turns = 0;
};

struct BatchCopies : impl::BatchCopiesBase<BatchCopies> {
  using BatchCopiesBase::BatchCopiesBase;

  void runOnOperation() override {
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      DenseSet<Operation *> moments;
      for (auto variable : module.getBody().getOps<plan::VariableOp>())
        if (variable.getRole() == VariableRole::moment && !takeMoments)
          moments.insert(plan::placeOf(variable.getBuffer()).buffer);
      for (auto program : module.getBody().getOps<plan::ProgramOp>())
        batch(program.getBody().front(), moments, sidesOf(program, ProgramBlocks(program)));
    }
  }

private:
  /// Iterations of loops move buffers: what is inside stays as it is. A case of a switch is of one
  /// side.
  void batch(Block &list, const DenseSet<Operation *> &moments, ArrayRef<Side> sides) {
    batched += CopyBatches(list, moments, sides).run();
    for (auto choice : list.getOps<plan::SwitchOp>())
      for (Region &region : choice->getRegions())
        batch(region.front(), moments, {});
  }
};

} // namespace
} // namespace hydra
