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

/// Whether an operation works on this value alone, or on it and parameters, row by row or as a view:
/// shapes, rotations, norms. Not a matmul with another weight.
bool transforms(Operation *op, Value v) {
  auto storage = dyn_cast<StorageOpInterface>(op);
  const bool view = storage && storage.viewedOperand() == 0u;
  return (view || isa<RowWiseOpInterface>(op)) && op->getOperand(0) == v &&
         llvm::all_of(llvm::drop_begin(op->getOperands()),
                      [](Value other) { return other.getDefiningOp<UseOp>() != nullptr; });
}

/// The attention that all of a value goes into, as query, key or value, through operations that
/// transform it alone. Null when there is none, or several.
Operation *attentionOf(Value v) {
  while (v.hasOneUse()) {
    Operation *user = *v.user_begin();
    if (isa<AttentionOp>(user))
      return user;
    if (!transforms(user, v))
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
