// hydra-fuse-siblings: other linear layers of one input become one matmul.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"
#include "passes/model/Projections.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSESIBLINGS
#include "passes/Passes.h.inc"

namespace {

/// Columns of which rows of 16 bits are whole 16 bytes, as fast matmuls want them.
constexpr int64_t kAligned = 8;

/// Whether some layers are of those that hydra-fuse-qkv or hydra-fuse-gate-up is for.
bool isOthers(LinearOp layer, ArrayRef<LinearOp> siblings) {
  Operation *attention = attentionOf(layer.getY()), *gate = gateOf(layer.getY());
  return llvm::any_of(siblings, [&](LinearOp other) {
    return other != layer && ((attention && attentionOf(other.getY()) == attention) ||
                              (gate && siblings.size() == 2 && gateOf(other.getY()) == gate));
  });
}

/// Whether nothing else reads the parameters of a layer: they can lie beside those of its siblings
/// alone.
bool isAlone(LinearOp layer) {
  return layer.getW().hasOneUse() && (!layer.getB() || layer.getB().hasOneUse());
}

/// Those that no other pass fuses and that are better off together.
LayerGroups otherLayers(ArrayRef<LinearOp> siblings) {
  LinearOp first = siblings.front();
  const bool adapted = llvm::any_of(first.getX().getUsers(), [](Operation *user) {
    auto linear = dyn_cast<LinearOp>(user);
    return linear && isAdapter(linear);
  });
  if (adapted) // joined with what is added to them, they measured slower
    return {};
  SmallVector<LinearOp> layers;
  for (LinearOp layer : siblings)
    if (build::shapeOf(layer.getY()).back() % kAligned == 0 && isAlone(layer) &&
        !isOthers(layer, siblings))
      layers.push_back(layer);
  return {layers};
}

struct FuseSiblings : impl::FuseSiblingsBase<FuseSiblings> {
  void runOnOperation() override {
    if (failed(fuseProjections(getOperation(), getArgument(), fused, otherLayers)))
      signalPassFailure();
  }
};

} // namespace
} // namespace hydra
