// hydra-fuse-operands: matmuls of few rows compute the rows that they read, and attention over
// slots its queries and keys.
#include "dialects/hydra/Target.h"
#include "dialects/plan/BufferUsers.h"
#include "dialects/plan/KernelExpansion.h"
#include "dialects/plan/Plan.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEOPERANDS
#include "passes/Passes.h.inc"

namespace {

/// The matmul that is the next block of the list; null where another is.
plan::MatmulOp matmulBehind(plan::LaunchOp launch) {
  Operation *next = launch->getNextNode();
  while (next && isa<plan::BufferOp, plan::ViewOp>(next))
    next = next->getNextNode();
  return dyn_cast_or_null<plan::MatmulOp>(next);
}

/// The launches right in front of a block of the list that do not belong to another one, in order.
SmallVector<plan::LaunchOp> launchesInFront(Operation *block) {
  SmallVector<plan::LaunchOp> launches;
  for (Operation *op = block->getPrevNode(); op; op = op->getPrevNode()) {
    if (isa<plan::BufferOp, plan::ViewOp>(op))
      continue;
    auto launch = dyn_cast<plan::LaunchOp>(op);
    if (!launch || launch->hasAttr(plan::kComputedAttr))
      break;
    launches.push_back(launch);
  }
  std::reverse(launches.begin(), launches.end());
  return launches;
}

/// Whether nothing but these launches and the step behind them touches what the launches make, and
/// the step writes over nothing that they read: then it can do their work.
bool areForStepAlone(ArrayRef<plan::LaunchOp> launches, plan::StepInterface step) {
  const auto belongs = [&](Operation *user) {
    return user == step || llvm::is_contained(launches, user);
  };
  SmallPtrSet<Operation *, 8> read;
  for (plan::LaunchOp launch : launches)
    for (auto [value, access] : llvm::zip(launch.getArgs(), launch.getAccess())) {
      plan::BufferOp buffer = plan::placeOf(value).buffer;
      if (access == plan::kRead)
        read.insert(buffer);
      else if (access != plan::kWrite || !buffer.isTransient() ||
               !llvm::all_of(plan::usersOf(buffer.getBuffer()), belongs))
        return false;
    }
  return llvm::none_of(llvm::zip(step.getArgs(), step.getAccesses()), [&](const auto &argument) {
    const auto [value, access] = argument;
    return access != plan::kRead && read.contains(plan::placeOf(value).buffer);
  });
}

/// A launch and the matmul behind it that is to do its work. Some blocks of the matmul still read
/// when another writes, so nothing may lie over what the two read.
class Pair {
public:
  Pair(plan::LaunchOp launch, plan::MatmulOp matmul) : launch(launch), matmul(matmul) {
    for (auto [value, access] : llvm::zip(launch.getArgs(), launch.getAccess()))
      if (access == plan::kRead)
        read.push_back(value);
      else if (plan::sameElements(value, matmul.getA()))
        operand = value;
      else
        written.push_back(value);
    for (Value other : {matmul.getB(), matmul.getBias(), matmul.getWeightScale()})
      if (other)
        others.push_back(other);
    llvm::append_range(read, others);
    keepsOperand = operand && isUsedLater(operand);
    if (keepsOperand)
      written.push_back(operand);
  }

  /// Fuses the two, unless something lies where it cannot be moved away from.
  bool fuse() {
    const auto stays = [&](Value value) { return isOverRead(value) && !canMoveApart(value); };
    if (!operand || readsMore() || isOverRead(matmul.getC()) || llvm::any_of(written, stays))
      return false;
    for (Value value : written)
      if (isOverRead(value))
        moveApart(value);
    launch->setAttr(plan::kComputedAttr, BoolAttr::get(launch.getContext(), keepsOperand));
    return true;
  }

private:
  bool isBehind(Operation *user) const {
    Operation *at = launch->getBlock()->findAncestorOpInBlock(*user);
    return !at || launch->isBeforeInBlock(at);
  }

  /// Whether a step behind the two may use what they leave.
  bool isUsedLater(Value value) const {
    plan::BufferOp buffer = plan::placeOf(value).buffer;
    return !buffer.isTransient() ||
           llvm::any_of(plan::usersOf(buffer.getBuffer()),
                        [&](Operation *user) { return user != matmul && isBehind(user); });
  }

  /// Whether the matmul reads what the launch makes as another operand too: its blocks do not wait
  /// for each other.
  bool readsMore() {
    return llvm::any_of(llvm::zip(launch.getArgs(), launch.getAccess()), [&](const auto &argument) {
      const auto [value, access] = argument;
      return access != plan::kRead && llvm::any_of(others, [&](Value other) {
               return plan::placeOf(other).buffer == plan::placeOf(value).buffer;
             });
    });
  }

  bool isOverRead(Value value) const {
    return llvm::any_of(read, [&](Value from) {
      return plan::placeOf(from).buffer == plan::placeOf(value).buffer;
    });
  }

  /// Whether a result that was given the bytes of an operand can have bytes of its own: from the
  /// launch on they go by its name alone.
  bool canMoveApart(Value value) const {
    plan::BufferOp buffer = plan::placeOf(value).buffer;
    if (!value.getDefiningOp<plan::ViewOp>() || !buffer.isTransient() ||
        !cast<MemRefType>(value.getType()).getLayout().isIdentity())
      return false;
    const SetVector<Operation *> own = plan::usersOf(value);
    const auto isOwn = [&](Operation *user) { return user == launch || isBehind(user); };
    return llvm::all_of(own, isOwn) &&
           llvm::all_of(plan::usersOf(buffer.getBuffer()), [&](Operation *user) {
             return user == launch || own.contains(user) || !isBehind(user);
           });
  }

  void moveApart(Value value) {
    auto view = value.getDefiningOp<plan::ViewOp>();
    OpBuilder b(view);
    auto buffer = plan::BufferOp::create(b, view.getLoc(), cast<MemRefType>(value.getType()),
                                         plan::Segment::transient,
                                         plan::placeOf(value).buffer.getCategory(), IntegerAttr());
    value.replaceAllUsesWith(buffer.getBuffer());
    view.erase();
  }

  plan::LaunchOp launch;
  plan::MatmulOp matmul;
  SmallVector<Value> others; ///< operands of the matmul that are not to be computed
  SmallVector<Value> read, written;
  Value operand; ///< what the launch makes for the matmul
  bool keepsOperand = false;
};

struct FuseOperands : impl::FuseOperandsBase<FuseOperands> {
  void runOnOperation() override {
    const TargetAttr target = targetOf(getOperation());
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      const auto *backends = plan::kernelExpansionOf(module);
      if (!backends)
        return signalPassFailure();
      for (auto program : module.getBody().getOps<plan::ProgramOp>()) {
        // The last first: sums that lie over one another, layer by layer, come apart from the end.
        SmallVector<plan::LaunchOp> launches(program.getBody().getOps<plan::LaunchOp>());
        for (plan::LaunchOp launch : llvm::reverse(launches))
          if (plan::MatmulOp matmul = matmulBehind(launch);
              matmul && backends->canComputeOperand(launch, matmul, target))
            fused += Pair(launch, matmul).fuse();
        for (auto attention : program.getBody().getOps<plan::CachedAttentionOp>())
          fuse(attention, *backends, target);
      }
    }
  }

private:
  /// As many launches in front of attention as can be.
  void fuse(plan::CachedAttentionOp attention, const plan::KernelExpansionInterface &backends,
            TargetAttr target) {
    const SmallVector<plan::LaunchOp> all = launchesInFront(attention);
    for (size_t first = 0; first < all.size(); ++first) {
      const ArrayRef<plan::LaunchOp> launches = ArrayRef(all).drop_front(first);
      if (!areForStepAlone(launches, cast<plan::StepInterface>(attention.getOperation())) ||
          !backends.canComputeOperands(launches, attention, target))
        continue;
      for (plan::LaunchOp launch : launches)
        launch->setAttr(plan::kComputedAttr, BoolAttr::get(launch.getContext(), false));
      fused += launches.size();
      return;
    }
  }
};

} // namespace
} // namespace hydra
