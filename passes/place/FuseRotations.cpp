// hydra-fuse-rotations: gradients of queries and keys are rotated where they are stored.
#include "dialects/hydra/Target.h"
#include "dialects/plan/BufferUsers.h"
#include "dialects/plan/KernelExpansion.h"
#include "passes/Passes.h"
#include "passes/place/Batches.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEROTATIONS
#include "passes/Passes.h.inc"

namespace {

/// A step for gradients of attention, and the launches behind it whose work its kernels do.
class Rotations {
public:
  explicit Rotations(plan::AttentionGradOp op) : op(op) {}

  /// Marks the step, and puts the launches right behind it.
  unsigned fuse(const plan::KernelExpansionInterface &backends, TargetAttr target) {
    for (plan::LaunchOp launch : candidates()) {
      launches.push_back(launch);
      if (!backends.canRotateGradients(op, launches, target) || writesOverUsed() ||
          !canMove(launch))
        launches.pop_back();
    }
    if (launches.empty())
      return 0;
    Operation *behind = op;
    for (plan::LaunchOp launch : launches) {
      for (Value arg : launch.getArgs())
        moveBefore(arg, op);
      launch->moveAfter(behind);
      behind = launch;
    }
    op->setAttr(plan::kRotationsAttr,
                IntegerAttr::get(IntegerType::get(op.getContext(), 64), launches.size()));
    return launches.size();
  }

private:
  /// Launches that alone read gradients of queries or of keys, in order.
  SmallVector<plan::LaunchOp> candidates() {
    SmallVector<plan::LaunchOp> found;
    for (Value gradient : {op.getDq(), op.getDk()})
      if (plan::LaunchOp launch = onlyReader(gradient);
          launch && !llvm::is_contained(found, launch))
        found.push_back(launch);
    llvm::sort(found, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return found;
  }

  /// All that uses a gradient's buffer, but for the step; null where that is not one free launch
  /// behind it.
  plan::LaunchOp onlyReader(Value gradient) {
    plan::BufferOp buffer = plan::placeOf(gradient).buffer;
    plan::LaunchOp only;
    if (!buffer.isTransient())
      return only;
    for (Operation *user : plan::usersOf(buffer.getBuffer())) {
      if (user == op)
        continue;
      auto launch = dyn_cast<plan::LaunchOp>(user);
      if (!launch || only || launch->getBlock() != op->getBlock() || !op->isBeforeInBlock(launch) ||
          isPartOfNext(launch) || launch->hasAttr(plan::kCountedAttr))
        return {};
      only = launch;
    }
    return only;
  }

  /// Whether a launch writes over what the step, or any of the launches, uses under another name.
  bool writesOverUsed() {
    SmallVector<plan::StepInterface> steps{op};
    steps.append(launches.begin(), launches.end());
    for (plan::LaunchOp launch : launches)
      for (OpOperand &to : launch.getArgsMutable()) {
        if (launch.getAccess()[to.getOperandNumber()] == plan::kRead)
          continue;
        for (plan::StepInterface step : steps)
          for (OpOperand &used : step->getOpOperands())
            if (&used != &to && overlap(used.get(), to.get()))
              return true;
      }
    return false;
  }

  /// Whether a launch can run right behind the step; others that do so are in front of it anyway.
  bool canMove(plan::LaunchOp launch) {
    for (Operation *at = op->getNextNode(); at != launch; at = at->getNextNode())
      if (isa<plan::BlockInterface>(at) && !llvm::is_contained(launches, at) &&
          conflict(launch, at))
        return false;
    return true;
  }

  plan::AttentionGradOp op;
  SmallVector<plan::LaunchOp> launches;
};

struct FuseRotations : impl::FuseRotationsBase<FuseRotations> {
  void runOnOperation() override {
    const TargetAttr target = targetOf(getOperation());
    for (auto module : getOperation().getOps<plan::PlanModuleOp>()) {
      const auto *backends = plan::kernelExpansionOf(module);
      if (!backends)
        return signalPassFailure();
      for (auto program : module.getBody().getOps<plan::ProgramOp>()) {
        SmallVector<plan::AttentionGradOp> steps(program.getBody().getOps<plan::AttentionGradOp>());
        for (plan::AttentionGradOp step : steps)
          fused += Rotations(step).fuse(*backends, target);
      }
    }
  }
};

} // namespace
} // namespace hydra
