// hydra-lower-losses: losses, norms and reductions that are not row-wise become operations that
// are.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_LOWERLOSSES
#include "passes/Passes.h.inc"

namespace {

/// A sum over parts that are joined for it alone, along another axis than those it goes over: each
/// part is summed where it is made, and the sums are joined. False where it is none, or of so
/// little that one sum is less work than a launch more for each part.
bool sumParts(SumOp op, StringRef pass) {
  constexpr int64_t kLeastBytes = 256 * 1024;
  auto joined = op.getX().getDefiningOp<ConcatOp>();
  if (!joined || !joined->hasOneUse() || bytesOf(op.getX().getType()) < kLeastBytes)
    return false;
  const auto rank = static_cast<int64_t>(build::shapeOf(op.getX()).size());
  const auto axis = static_cast<int64_t>(joined.getAxis());
  int64_t along = axis; // of the sums
  for (const int64_t number : op.getAxes()) {
    const int64_t other = number < 0 ? number + rank : number;
    if (other == axis)
      return false;
    along -= !op.getKeep() && other < axis;
  }
  const Location loc = madeBy(pass, op.getLoc());
  OpBuilder b(op);
  SmallVector<Value> sums;
  for (Value part : joined.getParts()) {
    SmallVector<int64_t> shape(build::shapeOf(op.getY()));
    shape[along] = build::shapeOf(part)[axis];
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(part); // its group is still open there
    sums.push_back(SumOp::create(b, loc, build::typeOf(op.getY()).clone(shape), part,
                                 op.getAxesAttr(), op.getKeepAttr()));
  }
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || static_cast<int64_t>(slice.getAxis()) != along)
      continue;
    auto first = static_cast<int64_t>(slice.getStart());
    for (Value sum : sums) {
      const int64_t size = build::shapeOf(sum)[along];
      if (first == 0 && size == static_cast<int64_t>(slice.getSize())) {
        slice.replaceAllUsesWith(sum);
        slice.erase();
        break;
      }
      first -= size;
    }
  }
  if (!op->use_empty())
    op.replaceAllUsesWith(build::concat(b, loc, sums, along));
  op.erase();
  joined.erase();
  return true;
}

struct LowerLosses : impl::LowerLossesBase<LowerLosses> {
  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    SmallVector<SumOp> sums;
    model.walk([&](SumOp op) { sums.push_back(op); });
    for (SumOp op : sums)
      lowered += sumParts(op, getArgument());
    SmallVector<RowWiseFormOpInterface> found;
    model.walk([&](RowWiseFormOpInterface op) {
      if (op.needsRowWiseForm())
        found.push_back(op);
    });
    for (RowWiseFormOpInterface op : found) {
      OpBuilder b(op);
      op->setLoc(madeBy(getArgument(), op->getLoc()));
      op->replaceAllUsesWith(op.buildRowWiseForm(b));
      op->erase();
      ++lowered;
    }
  }
};

} // namespace
} // namespace hydra
