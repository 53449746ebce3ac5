// hydra-fuse-loops: a loop whose slices never meet becomes one kernel.
#include "dialects/hydra/Target.h"
#include "dialects/plan/Slices.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSELOOPS
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t kMostSlices = 4096;

struct FuseLoops : impl::FuseLoopsBase<FuseLoops> {
  void runOnOperation() override {
    const TargetAttr target = targetOf(getOperation());
    if (target.getMultiprocessors() == 0)
      return;
    getOperation().walk([&](plan::LoopOp loop) {
      const std::optional<int64_t> lanes = plan::lanesOf(loop);
      if (std::optional<int64_t> slices = lanes ? lanes : bestSlices(loop, target)) {
        loop.setSlices(slices);
        ++fused;
      }
    });
  }

private:
  /// Where one kernel, by the rates of one block, takes less time than a launch for every step.
  static std::optional<int64_t> bestSlices(plan::LoopOp loop, TargetAttr target) {
    int64_t steps = 0, flops = 0, bytes = 0;
    SetVector<int64_t> candidates; // by the shapes of what the steps work on
    for (Operation &op : loop.getBody().front()) {
      if (!isa<plan::BlockInterface>(op))
        continue;
      auto step = dyn_cast<plan::StepInterface>(op);
      if (!step)
        return std::nullopt;
      ++steps;
      flops += static_cast<int64_t>(step.getFlops());
      bytes += static_cast<int64_t>(step.getBytes());
      for (Value arg : op.getOperands()) {
        int64_t product = 1;
        for (int64_t size : cast<MemRefType>(arg.getType()).getShape())
          if ((product *= size) <= kMostSlices)
            candidates.insert(product);
      }
    }
    const bool apart = plan::areIterationsApart(loop);
    std::optional<int64_t> best;
    double least = steps * target.rate(kGraphLaunchSeconds);
    for (int64_t slices : candidates) {
      const int64_t each = target.getMultiprocessors();
      const double waves = llvm::divideCeil(slices, each);
      // Blocks share out iterations that can run side by side.
      const int64_t beside =
          apart ? std::clamp<int64_t>(each / slices, 1, static_cast<int64_t>(loop.getCount())) : 1;
      const double time =
          waves / beside *
          (steps * target.rate(kLoopStepSeconds) + flops / target.rate(kBlockFlops) / slices +
           bytes / target.rate(kBlockBandwidth) / slices);
      if (time >= least || !plan::canBeSliced(loop, slices))
        continue;
      least = time;
      best = slices;
    }
    return best;
  }
};

} // namespace
} // namespace hydra
