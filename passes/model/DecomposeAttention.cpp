// hydra-decompose-attention: attention as matmuls, a cap, a mask and a softmax over all scores.
#include "passes/Passes.h"
#include "passes/model/AttentionSteps.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_DECOMPOSEATTENTION
#include "passes/Passes.h.inc"

namespace {

struct DecomposeAttention : impl::DecomposeAttentionBase<DecomposeAttention> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      for (auto op : llvm::make_early_inc_range(entry.getBody().front().getOps<AttentionOp>())) {
        if (op.getSaving())
          continue;
        op.getO().replaceAllUsesWith(writeAttentionSteps(op, getArgument()));
        op.erase();
        ++decomposed;
      }
  }
};

} // namespace
} // namespace hydra
