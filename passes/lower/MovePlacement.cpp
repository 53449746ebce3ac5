// Values that are made where an operation would move them.
#include "passes/lower/MovePlacement.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
#include "dialects/plan/MatmulBatch.h"
#include "dialects/plan/Plan.h"
#include "passes/lower/BufferCategory.h"
#include "passes/place/ActiveRows.h"
#include "passes/place/Layouts.h"

using namespace mlir;

namespace hydra {

/// What others read as well lies at multiples of so many bytes, as in a buffer of its own.
static constexpr int64_t kPiece = 16;
/// It keeps all of what it is moved to alive: so many times its own bytes at most.
static constexpr int64_t kMostParts = 3;
/// A value of so many times the bytes of what another is moved to may be where memory peaks.
static constexpr int64_t kPeak = 4;
/// Bytes side by side from which on memory is written as fast elsewhere as densely: a sector.
static constexpr int64_t kLeastRun = 32;

/// Adds the uses of a value that move it, itself or as a view that has its elements in another
/// order or shape: those of concatenations apart.
static void findMoves(Value value, SmallVectorImpl<OpOperand *> &joins,
                      SmallVectorImpl<OpOperand *> &others) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<ConcatOp>(user) && !user->hasAttr(kAdjacentAttr))
      joins.push_back(&use);
    else if (isa<PadOp, CopyOp>(user))
      others.push_back(&use);
    else if (isa<ReshapeOp, TransposeOp>(user) && user->hasAttr(kViewAttr))
      findMoves(user->getResult(0), joins, others);
  }
}

/// Whether a value has no use but this one, of itself or of what it is reshaped or transposed to.
static bool isOnlyUse(OpOperand &use, Value value) {
  Value part = use.get();
  while (part.hasOneUse() && part != value)
    part = part.getDefiningOp()->getOperand(0);
  return part.hasOneUse();
}

bool isReturned(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<ReturnOp>(user) || (user->hasAttr(kViewAttr) && isReturned(user->getResult(0)));
  });
}

/// Whether a value with other readers may keep what it is moved to alive for them. Programs return
/// what is theirs alone, and loops move what they work on.
static bool mayBeShared(Value result, Operation *move) {
  return move->getParentOfType<EntryOp>().isProgram() && !isReturned(result) &&
         (move->hasAttr(kPartsInPlaceAttr) ||
          build::typeOf(move->getResult(0)).getNumElements() <=
              kMostParts * build::typeOf(result).getNumElements());
}

bool canBeRead(Value result, MemRefType part, int64_t start, Value buffer) {
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

/// Whether rows would keep more zeros alive than numbers before they are padded.
static bool isMostlyPadding(Operation *pad) {
  return build::typeOf(pad->getResult(0)).getNumElements() >=
         2 * build::typeOf(pad->getOperand(0)).getNumElements();
}

/// How far from the beginning of what it is moved to a value begins, in strides of `axis`.
struct Position {
  int64_t axis = 0, start = 0;
};
static Position positionOf(OpOperand &use) {
  if (auto pad = dyn_cast<PadOp>(use.getOwner()))
    return {static_cast<int64_t>(pad.getAxis()), static_cast<int64_t>(pad.getBefore())};
  auto concat = dyn_cast<ConcatOp>(use.getOwner());
  if (!concat)
    return {};
  Position position{static_cast<int64_t>(concat.getAxis()), 0};
  for (Value before : concat.getParts().take_front(use.getOperandNumber()))
    position.start += build::shapeOf(before)[position.axis];
  return position;
}

/// The strides of a value that a view of it, `seen`, has such strides of.
static FailureOr<SmallVector<int64_t>> stridesBehind(Value seen, Value value,
                                                     SmallVector<int64_t> strides) {
  while (seen != value) {
    if (auto reshape = seen.getDefiningOp<ReshapeOp>()) {
      FailureOr<SmallVector<int64_t>> own =
          reshapedStrides(build::shapeOf(seen), strides, build::shapeOf(reshape.getX()));
      if (failed(own))
        return failure();
      strides = *own;
      seen = reshape.getX();
      continue;
    }
    auto transpose = seen.getDefiningOp<TransposeOp>();
    SmallVector<int64_t> own(strides.size());
    for (auto [stride, from] : llvm::zip(strides, transpose.getOrder()))
      own[from] = stride;
    strides = own;
    seen = transpose.getX();
  }
  // Where there is a single index, any stride is as good as that of a dense value.
  return reshapedStrides(build::shapeOf(value), strides, build::shapeOf(value));
}

/// Whether the rest of what a value is moved to would live, without need, beside something far
/// larger.
static bool livesThroughPeak(Value result, Operation *move) {
  const int64_t whole = bytesOf(move->getResult(0).getType());
  if (whole == bytesOf(result.getType()))
    return false;
  for (Operation *op = result.getDefiningOp()->getNextNode(); op != move; op = op->getNextNode())
    if (!op->hasAttr(kViewAttr) && llvm::any_of(op->getResultTypes(), [&](Type type) {
          return bytesOf(type) > kPeak * whole;
        }))
      return true;
  return false;
}

/// Whether a matmul would need more calls if its result lay so: those cost more than to move it.
static bool needsMoreCalls(plan::Lowering &lowering, Value result, ArrayRef<int64_t> strides) {
  auto matmul = result.getDefiningOp<MatmulOp>();
  if (!matmul)
    return false;
  const auto stridesOf = [&](Value operand) {
    return plan::stridesOf(cast<MemRefType>(lowering.source(operand).getType()));
  };
  const SmallVector<int64_t> a = stridesOf(matmul.getA()), b = stridesOf(matmul.getB());
  const ArrayRef<int64_t> shape = build::shapeOf(result), batch = shape.drop_back(2);
  return plan::matmulsAtOnce(batch, a, b, strides) <
         plan::matmulsAtOnce(batch, a, b, denseStrides(shape));
}

/// Whether a value may be written in another order than that of its own elements, if it is. That is
/// worth it only in runs of some length. What the device counts rows of stays as it was counted.
static bool mayBeReordered(plan::Lowering &lowering, Value result, OpOperand &use,
                           ArrayRef<int64_t> strides) {
  Operation *move = use.getOwner();
  bool isReordered = !isa<ConcatOp>(move);
  for (Value seen = use.get(); seen != result; seen = seen.getDefiningOp()->getOperand(0))
    isReordered |= isa<TransposeOp>(seen.getDefiningOp());
  if (!isReordered)
    return true;
  RankedTensorType type = build::typeOf(result);
  int64_t run = 1;
  for (size_t dim = strides.size(); dim-- > 0;) {
    if (type.getDimSize(dim) == 1)
      continue;
    if (strides[dim] != run)
      break;
    run *= type.getDimSize(dim);
  }
  return run * elementBytes(type.getElementType()) >= kLeastRun &&
         move->getParentOfType<EntryOp>().isProgram() && !move->hasAttr(kActiveRowsAttr) &&
         !result.getDefiningOp()->hasAttr(kActiveRowsAttr) && !livesThroughPeak(result, move) &&
         !needsMoreCalls(lowering, result, strides);
}

/// Whether a loop reads of a buffer. Where it also wrote there, its slices could not be told apart
/// (plan::canBeSliced), and it would be no kernel.
static bool readsOf(plan::Lowering &lowering, LoopOp loop, Value buffer) {
  return llvm::any_of(loop.getInputs(), [&](Value input) {
    return plan::placeOf(lowering.source(input)).buffer == plan::placeOf(buffer).buffer;
  });
}

Value MovePlacement::placeAt(Value result, OpOperand &use) {
  Operation *move = use.getOwner();
  const bool isShared = !isOnlyUse(use, result);
  if ((isShared && !mayBeShared(result, move)) || (isa<PadOp>(move) && isMostlyPadding(move)))
    return {};
  // What it is moved to may become part of something else, or get a buffer of its own.
  Value buffer = lowering.target(move->getResult(0));
  // A variable changes when it is moved there, not before.
  if (!isa<ConcatOp>(move) && !plan::placeOf(buffer).buffer.isTransient())
    return {};
  SmallVector<int64_t> whole = plan::stridesOf(cast<MemRefType>(buffer.getType()));
  RankedTensorType type = build::typeOf(result);
  FailureOr<SmallVector<int64_t>> own = stridesBehind(use.get(), result, whole);
  const unsigned number = cast<OpResult>(result).getResultNumber();
  auto storage = result.getDefiningOp<StorageOpInterface>();
  auto loop = result.getDefiningOp<LoopOp>();
  // What a loop joins is written chunk by chunk, what it carries as a whole.
  const bool isJoined =
      loop && succeeded(own) && number < loop.getScan().getStacked().size() &&
      (isOfGroups(loop) || (hasRows(type, *own, kLeastRun) && !livesThroughPeak(result, move)));
  if (failed(own) || !mayBeReordered(lowering, result, use, *own) ||
      (loop && readsOf(lowering, loop, buffer)) ||
      (!isJoined &&
       !accepts(storage ? storage.resultLayout(number) : OperandLayout{}, type.getShape(), *own)))
    return {};
  const Position position = positionOf(use);
  const int64_t start = position.start * (whole.empty() ? 0 : whole[position.axis]);
  const MemRefType part = plan::bufferType(type.getShape(), *own, type.getElementType());
  if (isShared && !canBeRead(result, part, start, buffer))
    return {};
  if (isShared)
    liveness.join(result, move->getResult(0));
  placed.insert({move, use.getOperandNumber()});
  return plan::ViewOp::create(lowering.builder(), result.getLoc(), part, buffer,
                              lowering.builder().getI64IntegerAttr(start),
                              plan::CategoryAttr::get(result.getContext(), categoryOf(result)));
}

Value MovePlacement::aliasOf(CopyOp copy) {
  Value source = lowering.source(copy.getX());
  auto type = cast<MemRefType>(source.getType());
  if (!copy->getParentOfType<EntryOp>().isProgram() || copy->hasAttr(kActiveRowsAttr) ||
      isReturned(copy.getY()) || !plan::placeOf(source).buffer.isTransient() ||
      plan::placeOf(source).bytes % kPiece != 0 || !isDense(type.getShape(), plan::stridesOf(type)))
    return {};
  Value root = layoutOf(copy.getX()).root;
  if (isa<BlockArgument>(root) || isReturned(root) ||
      build::typeOf(root).getNumElements() >
          kMostParts * build::typeOf(copy.getY()).getNumElements())
    return {};
  liveness.join(root, copy.getY());
  return source;
}

Value MovePlacement::place(Value result) {
  SmallVector<OpOperand *> moves, others;
  findMoves(result, moves, others);
  llvm::sort(others, [](OpOperand *a, OpOperand *b) {
    return a->getOwner()->isBeforeInBlock(b->getOwner());
  });
  moves.append(others); // concatenations first, which would move several values
  for (OpOperand *use : moves)
    if (Value part = placeAt(result, *use))
      return part;
  return {};
}

} // namespace hydra
