// hydra-fuse-qkv: projections to queries, keys and values become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEQKV
#include "passes/Passes.h.inc"

namespace {

struct FuseQKV : impl::FuseQKVBase<FuseQKV> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      SmallVector<SmallVector<LinearOp>> all = siblingProjections(entry);
      for (SmallVector<LinearOp> &siblings : all) {
        llvm::MapVector<Operation *, SmallVector<LinearOp>> byAttention;
        for (LinearOp linear : siblings)
          if (Operation *attention = attentionOf(linear.getY()))
            byAttention[attention].push_back(linear);
        for (auto &[attention, layers] : byAttention) {
          if (layers.size() < 2)
            continue;
          fuseProjections(getArgument(), layers);
          fused += layers.size();
        }
      }
    }
  }
};

} // namespace
} // namespace hydra
