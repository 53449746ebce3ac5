// hydra-fuse-qkv: projections to queries, keys and values become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEQKV
#include "passes/Passes.h.inc"

namespace {

/// The attention that all of a value goes into, as query, key or value: through operations that
/// work on each head alone (shapes, rotations, norms). Null when there is none, or several.
Operation *attentionOf(Value v) {
  while (v.hasOneUse()) {
    Operation *user = *v.user_begin();
    if (isa<AttentionOp>(user))
      return user;
    // Not the product with another weight, and nothing that adds or multiplies another value.
    if (!isa<ReshapeOp, TransposeOp, SliceOp, RopeOp, RmsNormOp, LayerNormOp>(user) ||
        user->getOperand(0) != v)
      return nullptr;
    v = user->getResult(0);
  }
  return nullptr;
}

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
          fuseProjections(layers);
          fused += layers.size();
        }
      }
    }
  }
};

} // namespace
} // namespace hydra
