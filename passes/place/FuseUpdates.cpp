// hydra-fuse-updates: gradients of matrices, and other sums of matmuls, are used where they are
// summed.
#include "dialects/hydra/Target.h"
#include "dialects/plan/BufferUsers.h"
#include "dialects/plan/KernelExpansion.h"
#include "passes/Passes.h"
#include "passes/place/Batches.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEUPDATES
#include "passes/Passes.h.inc"

namespace {

/// A matmul and the launches that use its result. `taken`: those that use another's already; what
/// reads two gradients, of a weight that is used twice, can be in the epilogue of one alone.
class Update {
public:
  Update(plan::MatmulOp matmul, DenseSet<Operation *> &taken) : matmul(matmul), taken(taken) {}

  /// Marks the matmul, and puts the launches right behind it: where the last of them stands, or
  /// else where it stands itself.
  bool fuse(const plan::KernelExpansionInterface &backends, TargetAttr target) {
    if (!findLaunches() || !backends.canUseSums(matmul, launches, target) || writesOverRead())
      return false;
    if (canWait()) {
      plan::LaunchOp last = launches.back();
      matmul->moveBefore(last);
      for (plan::LaunchOp launch : ArrayRef(launches).drop_back())
        launch->moveBefore(last);
    } else if (canComeEarly()) {
      Operation *last = matmul;
      for (plan::LaunchOp launch : launches) {
        for (Value arg : launch.getArgs())
          moveBefore(arg, matmul);
        launch->moveAfter(last);
        last = launch;
      }
    } else {
      return false;
    }
    readWithoutCopy(backends, target);
    matmul->setAttr(plan::kUpdatesAttr,
                    IntegerAttr::get(IntegerType::get(matmul.getContext(), 64), launches.size()));
    taken.insert(launches.begin(), launches.end());
    return true;
  }

private:
  /// All that uses the result, in order; false where that is more than free launches behind the
  /// matmul.
  bool findLaunches() {
    plan::BufferOp sums = plan::placeOf(matmul.getC()).buffer;
    if (!sums.isTransient() || computesOperand())
      return false;
    for (Operation *user : plan::usersOf(sums.getBuffer())) {
      if (user == matmul)
        continue;
      auto launch = dyn_cast<plan::LaunchOp>(user);
      if (!launch || taken.contains(launch) || launch->getBlock() != matmul->getBlock() ||
          !matmul->isBeforeInBlock(launch) || isPartOfNext(launch) ||
          launch->hasAttr(plan::kCountedAttr))
        return false;
      launches.push_back(launch);
    }
    llvm::sort(launches, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return !launches.empty();
  }

  /// Whether the launch in front is a part of the matmul, which cannot leave it then.
  bool computesOperand() {
    for (Operation *before = matmul->getPrevNode(); before; before = before->getPrevNode())
      if (isa<plan::BlockInterface>(before))
        return isPartOfNext(before);
    return false;
  }

  /// Whether a result lies over what is read elsewhere. In the place of numbers that the same
  /// launch reads it may lie: each is read and written by one thread.
  bool writesOverRead() const {
    SmallVector<plan::StepInterface> steps{matmul};
    steps.append(launches.begin(), launches.end());
    for (plan::LaunchOp launch : launches)
      for (auto [to, access] : llvm::zip(launch.getArgs(), launch.getAccess())) {
        if (access == plan::kRead)
          continue;
        for (plan::StepInterface step : steps)
          for (auto [arg, how] : llvm::zip(step.getArgs(), step.getAccesses())) {
            const bool isPlace = step == launch && how == plan::kRead &&
                                 plan::sameElements(arg, to) && arg.getType() == to.getType();
            // What one launch writes lies apart, if only element by element.
            const bool isItself = step == launch && how != plan::kRead;
            if (!isPlace && !isItself && overlap(arg, to))
              return true;
          }
      }
    return false;
  }

  /// Libraries multiply 8 bits along rows alone, so gradients were transposed for them by a copy.
  /// Where nothing but the matmul reads it, and the kernel can do without, it goes.
  void readWithoutCopy(const plan::KernelExpansionInterface &backends, TargetAttr target) {
    plan::CopyOp copy = copyOfOperand();
    if (!copy || isWrittenBehind(copy))
      return;
    const Value transposed = matmul.getA();
    OpBuilder b(copy);
    const auto type = cast<MemRefType>(copy.getFrom().getType());
    Value original = plan::ViewOp::create(
        b, copy.getLoc(),
        MemRefType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType()),
        copy.getFrom(), b.getI64IntegerAttr(0));
    matmul.getAMutable().assign(original);
    matmul.setTransposeA(true);
    if (backends.canUseSums(matmul, launches, target) && !writesOverRead()) {
      copy.erase();
      return;
    }
    matmul.getAMutable().assign(transposed);
    matmul.setTransposeA(false);
    original.getDefiningOp()->erase();
  }

  /// The copy in front of the matmul that transposes a matrix of rows that follow each other to its
  /// first operand, if nothing else touches that; null where there is none.
  plan::CopyOp copyOfOperand() {
    plan::BufferOp buffer = plan::placeOf(matmul.getA()).buffer;
    const llvm::SetVector<Operation *> users = plan::usersOf(buffer.getBuffer());
    if (matmul.getTransposeA() || !buffer.isTransient() || users.size() != 2 ||
        plan::placeOf(matmul.getB()).buffer == buffer)
      return {};
    auto copy = dyn_cast<plan::CopyOp>(users[0] == matmul ? users[1] : users[0]);
    if (!copy || copy->getBlock() != matmul->getBlock() || !copy->isBeforeInBlock(matmul) ||
        copy.getTo().getType() != matmul.getA().getType() ||
        !plan::sameElements(copy.getTo(), matmul.getA()))
      return {};
    const auto type = cast<MemRefType>(copy.getFrom().getType());
    const bool isTransposed =
        type.getRank() == 2 && plan::stridesOf(type) == ArrayRef<int64_t>{1, type.getDimSize(0)};
    return isTransposed ? copy : plan::CopyOp();
  }

  /// Whether what the copy reads, whose result the matmul alone reads, is written between the two.
  bool isWrittenBehind(plan::CopyOp copy) const {
    for (Operation *at = copy->getNextNode(); at != matmul; at = at->getNextNode())
      if (isa<plan::BlockInterface>(at) && conflict(copy, at))
        return true;
    return false;
  }

  /// Whether all launches can run where the matmul stands. Those that write variables wait instead:
  /// nothing is alive longer for it.
  bool canComeEarly() const {
    for (plan::LaunchOp launch : launches)
      for (auto [to, access] : llvm::zip(launch.getArgs(), launch.getAccess()))
        if (access != plan::kRead && !plan::placeOf(to).buffer.isTransient())
          return false;
    SmallVector<Operation *> passed;
    auto next = launches.begin();
    for (Operation *at = matmul->getNextNode(); next != launches.end(); at = at->getNextNode())
      if (at != *next) {
        if (isa<plan::BlockInterface>(at))
          passed.push_back(at);
      } else if (llvm::any_of(passed, [&](Operation *op) { return conflict(op, at); })) {
        return false;
      } else {
        ++next;
      }
    return true;
  }

  /// Whether the matmul and all launches can wait for the last one.
  bool canWait() const {
    SmallVector<Operation *> waiting{matmul};
    auto next = launches.begin();
    for (Operation *at = matmul->getNextNode(); at != launches.back(); at = at->getNextNode())
      if (at == *next)
        waiting.push_back(*next++);
      else if (isa<plan::BlockInterface>(at) &&
               llvm::any_of(waiting, [&](Operation *op) { return conflict(op, at); }))
        return false;
    return true;
  }

  plan::MatmulOp matmul;
  DenseSet<Operation *> &taken;
  SmallVector<plan::LaunchOp> launches;
};

struct FuseUpdates : impl::FuseUpdatesBase<FuseUpdates> {
  void runOnOperation() override {
    const TargetAttr target = targetOf(getOperation());
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      const auto *backends = plan::kernelExpansionOf(module);
      if (!backends)
        return signalPassFailure();
      for (auto program : module.getBody().getOps<plan::ProgramOp>()) {
        SmallVector<plan::MatmulOp> matmuls(program.getBody().getOps<plan::MatmulOp>());
        DenseSet<Operation *> taken;
        for (plan::MatmulOp matmul : matmuls)
          fused += Update(matmul, taken).fuse(*backends, target);
      }
    }
  }
};

} // namespace
} // namespace hydra
