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
  const unsigned number = cast<OpResult>(result).getResultNumber();
  auto storage = result.getDefiningOp<StorageOpInterface>();
  auto loop = result.getDefiningOp<LoopOp>();
  // What a loop joins is written chunk by chunk, what it carries as a whole.
  const bool isJoined = loop && number < loop.getWalk().getStacked().size() && isOfGroups(loop);
  if (failed(own) ||
      (!isJoined &&
       !accepts(storage ? storage.resultLayout(number) : OperandLayout{}, type.getShape(), *own)))
    return {};
  placed.insert({concat, use.getOperandNumber()});
  return plan::ViewOp::create(lowering.builder(), result.getLoc(),
                              plan::bufferType(type.getShape(), *own, type.getElementType()),
                              buffer, lowering.builder().getI64IntegerAttr(start * whole[axis]),
                              plan::CategoryAttr::get(result.getContext(), categoryOf(result)));
}

} // namespace hydra
