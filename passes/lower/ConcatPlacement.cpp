// Values that are made where a concatenation wants them.
#include "passes/lower/ConcatPlacement.h"

#include "dialects/hydra/Build.h"
#include "dialects/plan/Plan.h"
#include "passes/lower/BufferCategory.h"
#include "passes/place/Layouts.h"

using namespace mlir;

namespace hydra {

/// What others read as well lies at multiples of so many bytes, as in a buffer of its own.
static constexpr int64_t kPiece = 16;
/// It keeps all of a concatenation alive: so many times its own bytes at most.
static constexpr int64_t kMostParts = 3;

/// The use of a value, itself or reshaped, as a part of a concatenation; null where there is none.
static OpOperand *useAsPart(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<ConcatOp>(user) && !user->hasAttr(kAdjacentAttr))
      return &use;
    if (isa<ReshapeOp>(user) && user->hasAttr(kViewAttr))
      if (OpOperand *found = useAsPart(user->getResult(0)))
        return found;
  }
  return nullptr;
}

/// Whether a value has no use but this one, of itself or of what it is reshaped to.
static bool isOnlyUse(OpOperand &use, Value value) {
  Value part = use.get();
  while (part.hasOneUse() && part != value)
    part = part.getDefiningOp()->getOperand(0);
  return part.hasOneUse();
}

/// Whether a program returns a value, or a view of it.
static bool isReturned(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<ReturnOp>(user) || (user->hasAttr(kViewAttr) && isReturned(user->getResult(0)));
  });
}

/// Whether a value with other readers may keep a concatenation alive for them. Programs return what
/// is theirs alone, and loops move what they work on.
static bool mayBeShared(Value result, ConcatOp concat) {
  return concat->getParentOfType<EntryOp>().isProgram() && !isReturned(result) &&
         (concat->hasAttr(kPartsInPlaceAttr) ||
          build::typeOf(concat.getY()).getNumElements() <=
              kMostParts * build::typeOf(result).getNumElements());
}

/// Whether the readers of a value take it where it is such a part of a buffer, from element `start`
/// on.
static bool canBeRead(Value result, MemRefType part, int64_t start, Value buffer) {
  auto whole = buffer.getDefiningOp<plan::BufferOp>();
  const int64_t element = elementBytes(part.getElementType());
  const SmallVector<int64_t> strides = plan::stridesOf(part);
  const auto isAligned = [&](auto dim) {
    const auto &[size, stride] = dim;
    return size == 1 || stride == 1 || stride * element % kPiece == 0;
  };
  return whole && whole.isTransient() && start * element % kPiece == 0 &&
         llvm::all_of(llvm::zip(part.getShape(), strides), isAligned) &&
         readersAccept(result, strides);
}

Value ConcatPlacement::place(Value result) {
  OpOperand *use = useAsPart(result);
  if (!use)
    return {};
  auto concat = cast<ConcatOp>(use->getOwner());
  const bool isShared = !isOnlyUse(*use, result);
  if (isShared && !mayBeShared(result, concat))
    return {};
  int64_t axis = concat.getAxis(), start = 0;
  for (Value before : concat.getParts().take_front(use->getOperandNumber()))
    start += build::shapeOf(before)[axis];
  // The concatenation itself may become part of another one, or get a buffer of its own.
  Value buffer = lowering.target(concat.getY());
  SmallVector<int64_t> whole = plan::stridesOf(cast<MemRefType>(buffer.getType()));
  RankedTensorType type = build::typeOf(result);
  FailureOr<SmallVector<int64_t>> own =
      reshapedStrides(build::shapeOf(use->get()), whole, type.getShape());
  const unsigned number = cast<OpResult>(result).getResultNumber();
  auto storage = result.getDefiningOp<StorageOpInterface>();
  auto loop = result.getDefiningOp<LoopOp>();
  // What a loop joins is written chunk by chunk, what it carries as a whole.
  const bool isJoined = loop && number < loop.getScan().getStacked().size() && isOfGroups(loop);
  if (failed(own) ||
      (!isJoined &&
       !accepts(storage ? storage.resultLayout(number) : OperandLayout{}, type.getShape(), *own)))
    return {};
  const MemRefType part = plan::bufferType(type.getShape(), *own, type.getElementType());
  start *= whole[axis];
  if (isShared && !canBeRead(result, part, start, buffer))
    return {};
  if (isShared)
    liveness.join(result, concat.getY());
  placed.insert({concat, use->getOperandNumber()});
  return plan::ViewOp::create(lowering.builder(), result.getLoc(), part, buffer,
                              lowering.builder().getI64IntegerAttr(start),
                              plan::CategoryAttr::get(result.getContext(), categoryOf(result)));
}

} // namespace hydra
