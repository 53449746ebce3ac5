// Values that are made where a concatenation wants them.
#include "passes/lower/ConcatPlacement.h"

#include "dialects/hydra/Build.h"
#include "dialects/plan/Plan.h"
#include "passes/lower/BufferCategory.h"
#include "passes/place/Layouts.h"

using namespace mlir;

namespace hydra {

Value ConcatPlacement::place(Value result) {
  Value part = result;
  while (part.hasOneUse() && isa<ReshapeOp>(*part.user_begin()) &&
         part.user_begin()->hasAttr(kViewAttr))
    part = part.user_begin()->getResult(0);
  if (!part.hasOneUse())
    return {};
  OpOperand &use = *part.getUses().begin();
  auto concat = dyn_cast<ConcatOp>(use.getOwner());
  if (!concat || concat->hasAttr(kAdjacentAttr))
    return {};
  int64_t axis = concat.getAxis(), start = 0;
  for (Value before : concat.getParts().take_front(use.getOperandNumber()))
    start += build::shapeOf(before)[axis];
  // The concatenation itself may become part of another one, or get a buffer of its own.
  Value buffer = lowering.target(concat.getY());
  SmallVector<int64_t> whole = plan::stridesOf(cast<MemRefType>(buffer.getType()));
  RankedTensorType type = build::typeOf(result);
  FailureOr<SmallVector<int64_t>> own =
      reshapedStrides(build::shapeOf(part), whole, type.getShape());
  auto storage = result.getDefiningOp<StorageOpInterface>();
  if (failed(own) ||
      !accepts(storage ? storage.resultLayout(cast<OpResult>(result).getResultNumber())
                       : OperandLayout{},
               type.getShape(), *own))
    return {};
  placed.insert({concat, use.getOperandNumber()});
  return plan::ViewOp::create(lowering.builder(), result.getLoc(),
                              plan::bufferType(type.getShape(), *own, type.getElementType()),
                              buffer, lowering.builder().getI64IntegerAttr(start * whole[axis]),
                              plan::CategoryAttr::get(result.getContext(), categoryOf(result)));
}

} // namespace hydra
