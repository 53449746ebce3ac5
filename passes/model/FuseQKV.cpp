// hydra-fuse-qkv: projections to queries, keys and values become one matmul.
#include "passes/Passes.h"
#include "passes/model/Projections.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEQKV
#include "passes/Passes.h.inc"

namespace {

/// By the attention that they go into.
LayerGroups layersOfAttentions(ArrayRef<LinearOp> siblings) {
  llvm::MapVector<Operation *, SmallVector<LinearOp>> byAttention;
  for (LinearOp linear : siblings)
    if (Operation *attention = attentionOf(linear.getY()))
      byAttention[attention].push_back(linear);
  return LayerGroups(llvm::make_second_range(byAttention));
}

struct FuseQKV : impl::FuseQKVBase<FuseQKV> {
  void runOnOperation() override {
    if (failed(fuseProjections(getOperation(), getArgument(), fused, layersOfAttentions)))
      signalPassFailure();
  }
};

} // namespace
} // namespace hydra
