// hydra-form-fusions: row-wise operations become groups, each of them one kernel.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/group/GroupLayout.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FORMFUSIONS
#include "passes/Passes.h.inc"

namespace {

/// A group as it grows. It will stand where its last member stands, so it can grow only as long as
/// nothing outside uses a result of it.
struct Group {
  SmallVector<Operation *> members;
  llvm::SmallDenseSet<Value> tiles; ///< what it reads over the whole domain
  bool open = true;
};

/// Puts the operations of one block into groups.
class Grouping {
public:
  Grouping(Block &block, bool single, size_t buffers)
      : block(block), single(single), buffers(buffers) {}

  void run() {
    for (Operation &op : block) {
      if (isFreeSource(&op))
        continue;
      SmallVector<Group *> producers = producersOf(&op);
      if (isGroupable(&op))
        place(&op, producers);
      for (Group *producer : producers)
        if (producer != groupOf.lookup(&op))
          producer->open = false;
    }
  }

  /// Lets groups compute what an elementwise operation makes from tensors that they read anyway,
  /// instead of reading it as well.
  void repeatOperations() {
    if (single)
      return;
    for (Group *group : inOrder())
      while (repeatOperation(*group)) {
      }
  }

  /// All groups in the order in which they will stand.
  SmallVector<Group *> inOrder() {
    SmallVector<Group *> order;
    for (std::unique_ptr<Group> &group : groups)
      if (!group->members.empty())
        order.push_back(group.get());
    llvm::sort(order, standsBefore);
    return order;
  }

private:
  static bool standsBefore(const Group *a, const Group *b) {
    return a->members.back()->isBeforeInBlock(b->members.back());
  }

  /// The groups whose results an operation uses, the last one first.
  SmallVector<Group *> producersOf(Operation *op) {
    SetVector<Group *> found;
    for (Value operand : op->getOperands())
      if (Group *group = groupOf.lookup(originOf(operand).getDefiningOp()))
        found.insert(group);
    SmallVector<Group *> producers = found.takeVector();
    llvm::sort(producers, [](Group *a, Group *b) { return standsBefore(b, a); });
    return producers;
  }

  /// Open groups that read a tile which this one reads too, the last one first.
  SmallVector<Group *> neighboursOf(const GroupLayout &layout) {
    SetVector<Group *> found;
    for (Value tile : tilesOf(layout)) {
      SmallVector<Group *> &known = readers[tile];
      llvm::erase_if(known,
                     [&](Group *group) { return !group->open || !group->tiles.contains(tile); });
      found.insert(known.begin(), known.end());
    }
    SmallVector<Group *> neighbours = found.takeVector();
    llvm::sort(neighbours, [](Group *a, Group *b) { return standsBefore(b, a); });
    return neighbours;
  }

  static llvm::SmallDenseSet<Value> tilesOf(const GroupLayout &layout) {
    llvm::SmallDenseSet<Value> tiles;
    const RowDomain &domain = layout.getDomain();
    for (const GroupInput &input : layout.getInputs())
      if (input.form && sameForm(domain, *input.form, RowForm::Tile))
        tiles.insert(originOf(input.value));
    return tiles;
  }

  void place(Operation *op, ArrayRef<Group *> producers) {
    groups.push_back(std::make_unique<Group>());
    Group &group = *groups.back();
    set(group, *GroupLayout::find({op}));
    if (single)
      return;
    for (Group *other : producers)
      absorb(group, *other);
    for (Group *other : neighboursOf(*GroupLayout::find(group.members)))
      absorb(group, *other);
  }

  static Phase phaseOf(Operation *op) {
    ScopeAttr scope = scopeOf(op->getLoc());
    return scope ? scope.getPhase() : Phase::forward;
  }

  /// Whether a group makes losses, which would then be made behind the backward pass: where the
  /// group stands that takes it over, which looks at gradients or updates.
  static bool delaysLoss(const Group &group, const Group &other) {
    const auto isOfLoss = [](Operation *op) { return phaseOf(op) == Phase::loss; };
    const auto isOfUpdate = [](Operation *op) { return phaseOf(op) >= Phase::clip; };
    if (llvm::none_of(other.members, isOfLoss) || llvm::none_of(group.members, isOfUpdate))
      return false;
    for (Operation *op = other.members.back(); op != group.members.back(); op = op->getNextNode())
      if (phaseOf(op) == Phase::backward)
        return true;
    return false;
  }

  /// Takes the members of an open group over if all of them fit one domain, and broadcasts that
  /// have to be in memory for it do not cost more than that saves. The time to compile a kernel
  /// grows faster than its length, by which memory is hardly read less from here on.
  void absorb(Group &group, Group &other) {
    constexpr size_t kMostMembers = 256;
    if (!other.open || &group == &other || delaysLoss(group, other) ||
        group.members.size() + other.members.size() > kMostMembers)
      return;
    SmallVector<Operation *> members(other.members);
    llvm::append_range(members, group.members);
    llvm::sort(members, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    std::optional<GroupLayout> layout = GroupLayout::find(members);
    if (!layout || layout->getInputs().size() + layout->liveResults().size() > buffers)
      return;
    if (layout->readsReshapedBroadcast() &&
        bytesMoved(*layout) >= bytesMoved(*GroupLayout::find(group.members)) +
                                   bytesMoved(*GroupLayout::find(other.members)))
      return;
    other = Group();
    other.open = false;
    set(group, *layout);
  }

  static int64_t bytesRead(const GroupLayout &layout) {
    int64_t bytes = 0;
    for (const GroupInput &input : layout.getInputs())
      bytes += bytesOf(input.value.getType());
    return bytes;
  }

  /// What a group reads and writes, and what is written for it alone.
  static int64_t bytesMoved(const GroupLayout &layout) {
    int64_t bytes = 0;
    for (const GroupInput &input : layout.getInputs()) {
      const bool ofOthers = !input.value.getDefiningOp<BroadcastOp>();
      bytes += bytesOf((ofOthers ? input.value : originOf(input.value)).getType());
      if (layout.isReshapedBroadcast(input))
        bytes += 2 * bytesOf(input.value.getType());
    }
    for (Value result : layout.liveResults())
      bytes += bytesOf(result.getType());
    return bytes;
  }

  /// Puts a copy of one operation into a group if the group then reads less.
  bool repeatOperation(Group &group) {
    GroupLayout layout = *GroupLayout::find(group.members);
    for (const GroupInput &input : layout.getInputs()) {
      Value read = input.value;
      Operation *op = read.getDefiningOp();
      if (!op || !op->hasTrait<Elementwise>() || !isGroupable(op))
        continue;
      auto isReader = [&](OpOperand &use) { return groupOf.lookup(use.getOwner()) == &group; };
      Operation **first = llvm::find_if(group.members, [&](Operation *member) {
        return llvm::is_contained(member->getOperands(), read);
      });
      if (first == group.members.end()) // read through a broadcast
        continue;
      Operation *copy = OpBuilder(*first).clone(*op);
      if (ScopeAttr reader = scopeOf((*first)->getLoc()))
        copy->setLoc(withPhase(copy->getLoc(), reader.getPhase()));
      read.replaceUsesWithIf(copy->getResult(0), isReader);
      SmallVector<Operation *> members(group.members);
      members.insert(llvm::find(members, *first), copy);
      std::optional<GroupLayout> repeated = GroupLayout::find(members);
      if (repeated && bytesRead(*repeated) < bytesRead(layout)) {
        set(group, *repeated);
        return true;
      }
      copy->getResult(0).replaceAllUsesWith(read);
      copy->erase();
    }
    return false;
  }

  void set(Group &group, const GroupLayout &layout) {
    group.members.assign(layout.getMembers().begin(), layout.getMembers().end());
    group.tiles = tilesOf(layout);
    for (Value tile : group.tiles)
      if (SmallVector<Group *> &known = readers[tile]; !llvm::is_contained(known, &group))
        known.push_back(&group);
    for (Operation *op : group.members)
      groupOf[op] = &group;
  }

  Block &block;
  bool single;
  size_t buffers;
  SmallVector<std::unique_ptr<Group>> groups;
  DenseMap<Operation *, Group *> groupOf;
  DenseMap<Value, SmallVector<Group *>> readers; ///< by tile: groups that read it, maybe no more
};

struct FormFusions : impl::FormFusionsBase<FormFusions> {
  using FormFusionsBase::FormFusionsBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    if (buffers < 1) {
      model.emitOpError() << "cannot have groups of " << buffers.getValue() << " buffers";
      return signalPassFailure();
    }
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      form(entry.getBody().front());
  }

private:
  void form(Block &block) {
    eraseDead(block);
    settle(block);
    Grouping grouping(block, single, buffers);
    grouping.run();
    grouping.repeatOperations();
    // The last first: what a group reads is then known when the group that computes it is written.
    SmallVector<Group *> order = grouping.inOrder();
    for (Group *group : llvm::reverse(order))
      write(*GroupLayout::find(group->members));
    settle(block);
    // Numbers that something else than a group needs in memory.
    SmallVector<Operation *> sources;
    for (Operation &op : block)
      if (isa<ConstantOp, IotaOp>(op))
        sources.push_back(&op);
    for (Operation *op : sources)
      write(*GroupLayout::find({op}));
  }

  void write(const GroupLayout &layout) {
    operations += layout.getMembers().size();
    layout.build();
    ++groups;
  }

  /// Puts every free source right before its first use, and erases unused ones.
  static void settle(Block &block) {
    SmallVector<Operation *> sources;
    Places places;
    for (auto [i, op] : llvm::enumerate(block)) {
      places[&op] = i;
      if (isFreeSource(&op))
        sources.push_back(&op);
    }
    llvm::SmallPtrSet<Operation *, 32> settled;
    for (Operation *op : sources)
      settle(op, settled, places);
  }

  /// Where an operation stands, or where the one stands that it was put before. Asking the block
  /// would number all of it again after almost every move.
  using Places = DenseMap<Operation *, int64_t>;

  static void settle(Operation *op, llvm::SmallPtrSetImpl<Operation *> &settled, Places &places) {
    if (!settled.insert(op).second)
      return;
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (isFreeSource(user))
        settle(user, settled, places);
    if (op->use_empty())
      return op->erase();
    auto standsBefore = [&](Operation *a, Operation *b) {
      const int64_t x = places.lookup(a), y = places.lookup(b);
      if (x != y)
        return x < y;
      if (isFreeSource(a) != isFreeSource(b)) // one was put before the other
        return isFreeSource(a);
      return a->isBeforeInBlock(b);
    };
    Operation *first = *op->user_begin();
    for (Operation *user : op->getUsers())
      if (user != first && standsBefore(user, first))
        first = user;
    op->moveBefore(first);
    places[op] = places.lookup(first);
  }
};

} // namespace
} // namespace hydra
