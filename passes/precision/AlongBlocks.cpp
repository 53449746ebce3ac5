// Which updates can go along blocks, and how they are written so.
#include "passes/precision/AlongBlocks.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

/// Whether what makes a value becomes row-wise operations that its only reader takes in: the adds
/// of a sum over ranks, in the shape of its pieces.
static bool isMadeByRows(Value value) {
  Operation *maker = build::behindReshapes(value).getDefiningOp();
  return isa_and_present<RowWiseOpInterface>(maker) ||
         (isa_and_present<ReduceScatterOp>(maker) && maker->hasOneUse());
}

/// Whether an update of values of that shape goes element by element, and can go along blocks
/// instead: what it reads lies in memory, in one piece, and what it gives is guarded.
static bool canGoAlongBlocks(OptimizerOpInterface update, ArrayRef<int64_t> shape, int64_t block) {
  auto rowWise = dyn_cast<RowWiseOpInterface>(update.getOperation());
  if (!rowWise || rowWise.rowDimensions() || shape.back() <= block ||
      RefTensor::elements(shape) % block != 0)
    return false;
  for (Value operand : update->getOperands())
    if (!build::shapeOf(operand).empty() &&
        (build::shapeOf(operand) != shape || isMadeByRows(operand)))
      return false;
  return llvm::all_of(update->getResults(), [&](Value result) {
    return build::shapeOf(result) == shape && llvm::all_of(result.getUses(), [](OpOperand &use) {
             auto guard = dyn_cast<GuardOp>(use.getOwner());
             return guard && guard.getFresh() == use.get() && guard.getOld() != use.get();
           });
  });
}

Value alongBlocks(Value value, int64_t block) {
  auto own = value.getDefiningOp<GuardOp>();
  auto update = own ? own.getFresh().getDefiningOp<OptimizerOpInterface>() : OptimizerOpInterface();
  const SmallVector<int64_t> shape(build::shapeOf(value));
  if (!update || !canGoAlongBlocks(update, shape, block))
    return value;
  const SmallVector<int64_t> blocks{RefTensor::elements(shape) / block, block};
  auto inBlocks = [&](OpBuilder &b, Value x) {
    return build::shapeOf(x).empty() ? x : build::reshape(b, x.getLoc(), x, blocks);
  };
  OpBuilder b(update);
  SmallVector<Value> operands =
      llvm::map_to_vector(update->getOperands(), [&](Value x) { return inBlocks(b, x); });
  Operation *copy = b.clone(*update);
  copy->setOperands(operands);
  Value found;
  for (auto [result, fresh] : llvm::zip_equal(update->getResults(), copy->getResults())) {
    fresh.setType(build::typeOf(result).clone(blocks));
    for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
      auto guard = cast<GuardOp>(user);
      b.setInsertionPoint(guard);
      Value kept =
          GuardOp::create(b, guard.getLoc(), guard.getOk(), fresh, inBlocks(b, guard.getOld()));
      if (guard == own)
        found = kept;
      guard.replaceAllUsesWith(build::reshape(b, guard.getLoc(), kept, shape));
      guard.erase();
    }
  }
  update->erase();
  return found;
}

} // namespace hydra
