// hydra-fuse-epilogues: what a library's matmul can do with its sums, it does.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_FUSEEPILOGUES
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-fuse-epilogues";

/// Rows of whole 16 bytes, as libraries want the sums that they also write.
constexpr int64_t kAligned = 8;

struct FuseEpilogues : impl::FuseEpiloguesBase<FuseEpilogues> {
  using FuseEpiloguesBase::FuseEpiloguesBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    for (StringRef name : epilogues)
      if (name != "gelu") {
        model.emitOpError() << "knows no epilogue '" << name << "'; expected gelu";
        return signalPassFailure();
      }
    if (!llvm::is_contained(epilogues, "gelu"))
      return;
    SmallVector<GeluOp> found;
    model.walk([&](GeluOp gelu) { found.push_back(gelu); });
    for (GeluOp gelu : found)
      fuse(gelu);
  }

private:
  void fuse(GeluOp gelu) {
    auto linear = gelu.getX().getDefiningOp<LinearOp>();
    RankedTensorType type = build::typeOf(gelu.getX());
    if (!linear || gelu->getBlock() != linear->getBlock() ||
        !isNarrowFloat(type.getElementType()) ||
        build::typeOf(linear.getX()).getElementType() != type.getElementType() ||
        type.getShape().back() % kAligned != 0)
      return;
    bool saving = !linear.getY().hasOneUse();
    if (!saving && type.getNumElements() <= fewRows * type.getShape().back())
      return;
    OpBuilder b(linear);
    auto fused = LinearGeluOp::create(b, madeBy(kPass, gelu.getLoc()), linear.getX(), linear.getW(),
                                      linear.getB(), saving ? b.getUnitAttr() : UnitAttr(),
                                      linear.getReducedReductionAttr());
    gelu.getY().replaceAllUsesWith(fused.getY());
    gelu.erase();
    if (saving)
      linear.getY().replaceAllUsesWith(fused.getSums());
    linear.erase();
    ++this->fused;
  }
};

} // namespace
} // namespace hydra
