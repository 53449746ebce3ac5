// hydra-split-gathers: gathers over several axes of the mesh become one over each.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_SPLITGATHERS
#include "passes/Passes.h.inc"

namespace {

/// What it makes says so, for reports.
constexpr StringLiteral kPass = "hydra-split-gathers";

struct SplitGathers : impl::SplitGathersBase<SplitGathers> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    SmallVector<AllGatherOp> wide;
    SmallVector<RankOp> numbers;
    model.walk([&](Operation *op) {
      if (auto gather = dyn_cast<AllGatherOp>(op)) {
        number = std::max(number, gather.getNumber() + 1);
        if (MeshAttr::axesOf(gather.getOver()).size() > 1)
          wide.push_back(gather);
      }
      if (auto rank = dyn_cast<RankOp>(op); rank && MeshAttr::axesOf(rank.getOver()).size() > 1)
        numbers.push_back(rank);
    });
    for (AllGatherOp gather : wide)
      split(gather, *model.getMesh());
    for (RankOp rank : numbers)
      split(rank, *model.getMesh());
  }

private:
  /// The axis named last has the smallest pieces: what is gathered over it is a piece along the one
  /// before.
  void split(AllGatherOp gather, MeshAttr mesh) {
    OpBuilder b(gather);
    const Location loc = gather.getLoc(); // reports name who wanted it
    const SmallVector<StringRef, 2> axes = MeshAttr::axesOf(gather.getOver());
    Value whole = gather.getX();
    for (StringRef axis : llvm::reverse(axes)) {
      const bool isLast = axis == axes.front();
      const int64_t own = isLast ? static_cast<int64_t>(gather.getNumber()) : number++;
      whole = AllGatherOp::create(b, loc, whole, gather.getAxisAttr(), b.getStringAttr(axis),
                                  b.getI64IntegerAttr(mesh.size(axis)), b.getI64IntegerAttr(own));
    }
    gather.getY().replaceAllUsesWith(whole);
    gather.erase();
    ++gathers;
  }

  /// A number whose digits are where the rank is along each axis.
  static void split(RankOp rank, MeshAttr mesh) {
    OpBuilder b(rank);
    const Location loc = madeBy(kPass, rank.getLoc());
    Value sum;
    for (StringRef axis : MeshAttr::axesOf(rank.getOver())) {
      const int64_t size = mesh.size(axis);
      Value digit =
          RankOp::create(b, loc, rank.getType(), b.getStringAttr(axis), b.getI64IntegerAttr(size));
      sum = sum ? AddOp::create(b, loc, build::scale(b, loc, sum, static_cast<double>(size)), digit)
                      .getResult()
                : digit;
    }
    rank.replaceAllUsesWith(sum);
    rank.erase();
  }

  int64_t number = 0; ///< of the next gather
};

} // namespace
} // namespace hydra
