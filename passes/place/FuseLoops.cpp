// hydra-fuse-loops: a loop whose slices never meet becomes one kernel.
#include "dialects/plan/Slices.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSELOOPS
#include "passes/Passes.h.inc"

namespace {

// What a step of a loop takes on an H200, in microseconds: as a launch of its own in a graph, and
// as a part of a block's work, beside its share of arithmetic and memory at the rates of one block.
constexpr double kLaunch = 2.2, kStep = 0.5;
constexpr double kFlopsPerMicrosecond = 0.5e6, kBytesPerMicrosecond = 150e3;
constexpr int64_t kMultiprocessors = 132, kMostSlices = 4096;

struct FuseLoops : impl::FuseLoopsBase<FuseLoops> {
  void runOnOperation() override {
    getOperation().walk([&](plan::LoopOp loop) {
      if (std::optional<int64_t> slices = bestSlices(loop)) {
        loop.setSlices(slices);
        ++fused;
      }
    });
  }

private:
  static std::optional<int64_t> bestSlices(plan::LoopOp loop) {
    int64_t steps = 0, flops = 0, bytes = 0;
    SetVector<int64_t> candidates; // by the shapes of what the steps work on
    for (Operation &op : loop.getBody().front()) {
      if (!isa<plan::BlockInterface>(op))
        continue;
      if (!isa<plan::LaunchOp, plan::CallOp>(op))
        return std::nullopt;
      ++steps;
      flops += op.getAttrOfType<IntegerAttr>("flops").getInt();
      bytes += op.getAttrOfType<IntegerAttr>("bytes").getInt();
      for (Value arg : op.getOperands()) {
        int64_t product = 1;
        for (int64_t size : cast<MemRefType>(arg.getType()).getShape())
          if ((product *= size) <= kMostSlices)
            candidates.insert(product);
      }
    }
    std::optional<int64_t> best;
    double least = steps * kLaunch;
    for (int64_t slices : candidates) {
      const double waves = (slices + kMultiprocessors - 1) / kMultiprocessors;
      const double time = waves * (steps * kStep + flops / kFlopsPerMicrosecond / slices +
                                   bytes / kBytesPerMicrosecond / slices);
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
