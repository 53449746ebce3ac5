// hydra-fuse-qkv: projections to queries, keys and values become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEQKV
#include "passes/Passes.h.inc"

namespace {

/// Whether an operation passes its operands on, element by element, row by row or as views: shapes,
/// rotations, norms. Not a matmul with another weight.
bool passesOn(Operation *op) {
  auto storage = dyn_cast<StorageOpInterface>(op);
  return isa<RowWiseOpInterface, ConcatOp>(op) || (storage && storage.viewedOperand() == 0u);
}

/// The attention that all of a value goes into, as query, key or value, through operations that
/// pass on it and what was computed from it: a sum with anything else is not followed (an adapter
/// beside a projection: joined they measured slower). Null when there is none, or several.
Operation *attentionOf(Value v) {
  Operation *found = nullptr;
  llvm::SetVector<Value> values;
  llvm::SetVector<Operation *> sums;
  values.insert(v);
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isa<AttentionOp, CachedAttentionOp>(user)) {
        if (found && found != user)
          return nullptr;
        found = user;
      } else if (passesOn(user)) {
        values.insert(user->result_begin(), user->result_end());
        if (isa<AddOp, SubOp>(user))
          sums.insert(user);
      } else {
        return nullptr;
      }
    }
  auto ofOwn = [&](Value operand) {
    return values.contains(operand) || operand.getDefiningOp<UseOp>();
  };
  return llvm::all_of(sums, [&](Operation *sum) { return llvm::all_of(sum->getOperands(), ofOwn); })
             ? found
             : nullptr;
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
          fuseProjections(getArgument(), layers);
          fused += layers.size();
        }
      }
    }
  }
};

} // namespace
} // namespace hydra
