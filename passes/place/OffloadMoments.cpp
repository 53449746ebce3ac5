// hydra-offload-moments: moments of optimizers in the host's memory.
#include "dialects/plan/Ordering.h"
#include "passes/Passes.h"
#include "passes/place/Batches.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_OFFLOADMOMENTS
#include "passes/Passes.h.inc"

namespace {

/// Of what stands behind another in a slot.
constexpr int64_t kAlignment = 256;
/// Visits whose moments may have arrived before their steps begin. One would do if all were as
/// large.
constexpr size_t kAhead = 2;

int64_t bytesOf(plan::BufferOp buffer) {
  return plan::extentBytes(cast<MemRefType>(buffer.getType()));
}

/// Buffers that hold nothing but moments of at least so many bytes, and that nothing but steps of a
/// program's own list touches.
DenseSet<Operation *> movableBuffers(plan::PlanModuleOp module, int64_t least) {
  DenseSet<Operation *> movable, others;
  for (auto variable : module.getBody().getOps<plan::VariableOp>()) {
    plan::BufferOp buffer = plan::placeOf(variable.getBuffer()).buffer;
    const bool dense = cast<MemRefType>(buffer.getType()).getLayout().isIdentity();
    if (variable.getRole() == VariableRole::moment && bytesOf(buffer) >= least && dense)
      movable.insert(buffer);
    else
      others.insert(buffer);
  }
  module.walk([&](Operation *op) {
    const bool isStep = isa<plan::StepInterface>(op) && isa<plan::ProgramOp>(op->getParentOp());
    if (isStep || isa<plan::ViewOp, plan::VariableOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (plan::BufferOp buffer = plan::placeOf(operand).buffer)
        others.insert(buffer);
  });
  for (Operation *other : others)
    movable.erase(other);
  return movable;
}

/// Moments that steps work on together: from the first of these to the last they are on the device.
struct Visit {
  llvm::SetVector<Operation *> buffers;
  SmallVector<Operation *> steps; ///< in the order of the program
  int64_t first = 0, last = 0;    ///< their numbers
  size_t slot = 0;
  DenseMap<Operation *, int64_t> elements; ///< before each buffer's first in its slot
};

/// Transient memory that visits take turns in: a buffer for each type of elements.
struct Slot {
  int64_t freeFrom = -1; ///< behind this step
  llvm::MapVector<Type, int64_t> elements;
  DenseMap<Type, plan::BufferOp> buffers;
};

/// The visits of one program.
class Visits {
public:
  Visits(plan::ProgramOp program, const DenseSet<Operation *> &hosted, StringRef pass)
      : program(program), hosted(hosted), pass(pass) {}

  /// Returns how many transfers there are.
  int64_t run() {
    hastenCopies();
    findVisits();
    if (visits.empty())
      return 0;
    takeSlots();
    makeSlots();
    for (size_t i = 0; i < visits.size(); ++i)
      write(i);
    return transfers;
  }

private:
  /// What is copied into a moment where a program ends goes there as soon as it can: right behind
  /// the last that works on either before. So a visit takes no longer than its update.
  void hastenCopies() {
    /// By its number, and behind others of that number.
    struct Place {
      int64_t number = -1, turn = 0;
      Operation *op = nullptr;
      bool operator<(const Place &other) const {
        return std::pair(number, turn) < std::pair(other.number, other.turn);
      }
    };
    DenseMap<Operation *, Place> last; // that works on a buffer
    int64_t number = 0;
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
      if (!isa<plan::BlockInterface>(op))
        continue;
      SmallVector<Operation *> buffers;
      for (const plan::BufferUse &use : plan::usesOf(&op))
        buffers.push_back(plan::placeOf(use.value).buffer);
      Place own{number++, 0, &op};
      if (isa<plan::CopyOp>(op) && hosted.contains(plan::placeOf(op.getOperands().back()).buffer)) {
        Place before;
        for (Operation *buffer : buffers)
          before = std::max(before, last.lookup(buffer));
        if (before.op) {
          if (before.op->getNextNode() != &op)
            op.moveAfter(before.op);
          for (Value operand : op.getOperands())
            moveBefore(operand, &op);
          own = {before.number, before.turn + 1, &op};
        }
      }
      for (Operation *buffer : buffers)
        last[buffer] = own;
    }
  }

  void findVisits() {
    SmallVector<Operation *> steps;
    llvm::EquivalenceClasses<Operation *> together;
    SmallVector<SmallVector<Operation *, 4>> touched;
    for (Operation &op : program.getBody().front()) {
      if (!isa<plan::StepInterface>(op))
        continue;
      SmallVector<Operation *, 4> moments;
      for (Value operand : op.getOperands())
        if (plan::BufferOp buffer = plan::placeOf(operand).buffer; hosted.contains(buffer))
          moments.push_back(buffer);
      for (Operation *moment : moments)
        together.unionSets(moments.front(), moment);
      steps.push_back(&op);
      touched.push_back(std::move(moments));
    }
    DenseMap<Operation *, size_t> known; // visits by the leader of their buffers
    for (auto [number, op] : llvm::enumerate(steps)) {
      if (touched[number].empty())
        continue;
      auto [it, fresh] =
          known.try_emplace(together.getLeaderValue(touched[number].front()), visits.size());
      if (fresh)
        visits.emplace_back().first = static_cast<int64_t>(number);
      Visit &visit = visits[it->second];
      visit.steps.push_back(op);
      visit.last = static_cast<int64_t>(number);
      visit.buffers.insert(touched[number].begin(), touched[number].end());
    }
  }

  /// Moments arrive while the visit before is under way, in a slot that no other visit has then.
  void takeSlots() {
    for (auto [i, visit] : llvm::enumerate(visits)) {
      const int64_t from = visits[i - std::min(i, kAhead)].first;
      auto free = llvm::find_if(slots, [&](const Slot &slot) { return slot.freeFrom < from; });
      if (free == slots.end())
        free = slots.insert(slots.end(), Slot());
      visit.slot = free - slots.begin();
      free->freeFrom = visit.last;
      llvm::MapVector<Type, int64_t> used;
      for (Operation *buffer : visit.buffers) {
        auto type = cast<MemRefType>(cast<plan::BufferOp>(buffer).getType());
        const int64_t unit = kAlignment / elementBytes(type.getElementType());
        int64_t &count = used[type.getElementType()];
        visit.elements[buffer] = count;
        count += llvm::alignTo(type.getNumElements(), unit);
      }
      for (auto &[type, count] : used)
        free->elements[type] = std::max(free->elements[type], count);
    }
  }

  /// In front of the first step of all.
  void makeSlots() {
    Operation *first = visits.front().steps.front();
    OpBuilder b(first);
    for (Slot &slot : slots)
      for (auto &[type, count] : slot.elements)
        slot.buffers[type] = plan::BufferOp::create(
            b, madeBy(pass, first->getLoc()), MemRefType::get({count}, type),
            plan::Segment::transient, plan::Category::opt_state, IntegerAttr());
  }

  void write(size_t number) {
    Visit &visit = visits[number];
    DenseSet<Operation *> written;
    DenseMap<Operation *, Value> whole; // of the slot, by buffer
    OpBuilder b(visit.steps.front());
    if (number >= kAhead)
      b.setInsertionPointAfter(visits[number - kAhead].steps.front());
    else
      b.setInsertionPoint(visits.front().steps.front());
    const Location at = madeBy(pass, visit.steps.front()->getLoc());
    for (Operation *op : visit.buffers) {
      auto buffer = cast<plan::BufferOp>(op);
      whole[op] = place(b, at, visit, buffer, 0, cast<MemRefType>(buffer.getType()));
      move(b, at, buffer, whole[op]);
    }
    for (Operation *step : visit.steps)
      redirect(step, visit, written);
    b.setInsertionPointAfter(visit.steps.back());
    const Location from = madeBy(pass, visit.steps.back()->getLoc());
    for (Operation *op : visit.buffers)
      if (written.contains(op))
        move(b, from, whole[op], cast<plan::BufferOp>(op));
  }

  /// The bytes of a slot that stand for those of a moment, from `bytes` on.
  Value place(OpBuilder &b, Location at, Visit &visit, plan::BufferOp buffer, int64_t bytes,
              MemRefType type) {
    const int64_t size = elementBytes(type.getElementType());
    plan::BufferOp slot = slots[visit.slot].buffers.lookup(type.getElementType());
    return plan::ViewOp::create(b, at, type, slot,
                                b.getI64IntegerAttr(visit.elements[buffer] + bytes / size));
  }

  void redirect(Operation *step, Visit &visit, DenseSet<Operation *> &written) {
    OpBuilder b(step);
    const SmallVector<plan::Access> accesses = cast<plan::StepInterface>(step).getAccesses();
    for (auto [operand, access] : llvm::zip_equal(step->getOpOperands(), accesses)) {
      const plan::Place at = plan::placeOf(operand.get());
      if (!visit.buffers.contains(at.buffer))
        continue;
      if (access != plan::kRead)
        written.insert(at.buffer);
      operand.set(place(b, step->getLoc(), visit, at.buffer, at.bytes,
                        cast<MemRefType>(operand.get().getType())));
    }
  }

  void move(OpBuilder &b, Location at, Value from, Value to) {
    auto step = plan::TransferOp::create(b, at, from, to);
    auto named = cast<plan::StepInterface>(step.getOperation());
    named.setWork(0, plan::extentBytes(cast<MemRefType>(from.getType())));
    named.setReported(OpClass::transfer, "transfer");
    ++transfers;
  }

  plan::ProgramOp program;
  const DenseSet<Operation *> &hosted;
  StringRef pass;
  std::vector<Visit> visits; ///< by their first steps
  std::vector<Slot> slots;
  int64_t transfers = 0;
};

/// Views of moments that stand in a program name bytes that no step works on any more.
void dropViews(plan::PlanModuleOp module, const DenseSet<Operation *> &hosted) {
  SmallVector<Operation *> unused;
  module.walk([&](plan::ViewOp view) {
    if (hosted.contains(plan::placeOf(view).buffer))
      unused.push_back(view);
  });
  for (Operation *view : llvm::reverse(unused))
    if (view->use_empty())
      view->erase();
}

struct OffloadMoments : impl::OffloadMomentsBase<OffloadMoments> {
  using OffloadMomentsBase::OffloadMomentsBase;

  void runOnOperation() override {
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      const DenseSet<Operation *> hosted = movableBuffers(module, least);
      for (Operation *buffer : hosted)
        cast<plan::BufferOp>(buffer).setSegment(plan::Segment::host);
      for (auto program : module.getBody().getOps<plan::ProgramOp>())
        transfers += Visits(program, hosted, getArgument()).run();
      dropViews(module, hosted);
      offloaded += hosted.size();
    }
  }
};

} // namespace
} // namespace hydra
