// hydra-narrow-gradients: gradients of parameters are rounded to bf16 where a matmul makes them.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"
#include "passes/precision/Policy.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_NARROWGRADIENTS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-narrow-gradients";

/// Whether all that reads a value returns it as gradients of parameters, moved at most.
bool isGradientAlone(Value v) {
  return !v.use_empty() && llvm::all_of(v.getUses(), [](OpOperand &use) {
    if (auto end = dyn_cast<ReturnOp>(use.getOwner())) {
      const unsigned number = use.getOperandNumber();
      return number < end.getOutputNames().size() && end.gradientOf(number);
    }
    return precisionOf(use.getOwner()) == Precision::Move &&
           llvm::all_of(use.getOwner()->getResults(), isGradientAlone);
  });
}

struct NarrowGradients : impl::NarrowGradientsBase<NarrowGradients> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    Builder types(&getContext());
    for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
      if (!entry.isProgram())
        continue;
      for (MatmulOp matmul : llvm::to_vector(entry.getBody().getOps<MatmulOp>())) {
        Value sums = matmul->getResult(0);
        const bool isWide = matmul.getCompute().has_value(); // as `--layer-precision` asks for
        if (isWide || !build::typeOf(sums).getElementType().isF32() || !isGradientAlone(sums))
          continue;
        OpBuilder b(matmul->getContext());
        b.setInsertionPointAfter(matmul);
        const Location loc = madeBy(kPass, matmul.getLoc());
        Value low = build::cast(b, loc, sums, types.getBF16Type());
        Value wide = build::cast(b, loc, low, types.getF32Type());
        sums.replaceAllUsesExcept(wide, low.getDefiningOp());
        ++gradients;
      }
    }
  }
};

} // namespace
} // namespace hydra
