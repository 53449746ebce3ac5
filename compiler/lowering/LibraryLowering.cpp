// Operations that become steps other than launches of generated kernels.
#include "compiler/lowering/LibraryLowering.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/plan/Plan.h"

using namespace mlir;

namespace hydra {

namespace {

using plan::Lowering;

/// Makes a step for an operation.
template <typename Step, typename... Args>
void addStep(Lowering &lowering, Operation *op, Args &&...args) {
  lowering.finish(op, Step::create(lowering.builder(), op->getLoc(), std::forward<Args>(args)...));
}

/// Elements moved from one place to another, which may be a part of what the operation makes.
void addCopy(Lowering &lowering, Operation *op, Value from, Value to) {
  auto step = plan::CopyOp::create(lowering.builder(), op->getLoc(), from, to);
  lowering.finish(op, step);
  step.setWork(0, 2 * bytesOf(to.getType()));
}

/// One number in all of such a place.
void addFill(Lowering &lowering, Operation *op, Value to, double value) {
  auto step = plan::FillOp::create(lowering.builder(), op->getLoc(), to, llvm::APFloat(value));
  lowering.finish(op, step);
  step.setWork(0, bytesOf(to.getType()));
}

/// A vector as a matrix of one row, which is what a matmul takes; anything else as it is.
Value asMatrix(Lowering &lowering, Operation *op, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getRank() != 1)
    return buffer;
  const int64_t size = type.getDimSize(0), stride = plan::stridesOf(type)[0];
  OpBuilder &b = lowering.builder();
  return plan::ViewOp::create(b, op->getLoc(),
                              plan::bufferType({1, size},
                                               SmallVector<int64_t>{size * stride, stride},
                                               type.getElementType()),
                              buffer, b.getI64IntegerAttr(0));
}

/// The buffer itself if it begins at a multiple of so many bytes, or another of its type that does.
Value placeAt(Lowering &lowering, Operation *op, Value buffer, int64_t bytes) {
  if (plan::alignmentOf(buffer) % bytes == 0)
    return buffer;
  auto type = cast<MemRefType>(buffer.getType());
  return lowering.scratch(op, type.getShape(), type.getElementType());
}

/// The same with what is in the buffer.
Value readAt(Lowering &lowering, Operation *op, Value buffer, int64_t bytes) {
  Value place = placeAt(lowering, op, buffer, bytes);
  if (place != buffer)
    addCopy(lowering, op, buffer, place);
  return place;
}

/// What a matmul rounds its operands to as it reads them; null: nothing.
TypeAttr computeOf(PrecisionOpInterface op) {
  const Type format = op.multipliedIn(0);
  return format ? TypeAttr::get(format) : TypeAttr();
}

/// Of a linear layer, whose weight is [out, in].
template <typename Op>
void addLinear(Lowering &lowering, Op op, Value c, Value sums, bool gelu, TypeAttr compute) {
  Value x = asMatrix(lowering, op, lowering.source(op.getX())), w = lowering.source(op.getW());
  Value bias = op.getB() ? lowering.source(op.getB()) : Value();
  addStep<plan::MatmulOp>(
      lowering, op, x, w, bias, Value(), Value(), Value(), c, sums, /*transpose_a=*/false,
      /*transpose_b=*/true, /*accumulate=*/false, gelu, op.getReducedReduction(), compute);
}

struct LinearLowering : plan::PlanLoweringOpInterface::ExternalModel<LinearLowering, LinearOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto linear = cast<LinearOp>(op);
    addLinear(lowering, linear, asMatrix(lowering, op, lowering.target(op->getResult(0))), Value(),
              /*gelu=*/false, computeOf(linear));
    return success();
  }
};

struct ScaledLinearLowering
    : plan::PlanLoweringOpInterface::ExternalModel<ScaledLinearLowering, ScaledLinearOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto linear = cast<ScaledLinearOp>(op);
    Value x = asMatrix(lowering, op, lowering.source(linear.getX())),
          w = lowering.source(linear.getW()), scale = lowering.source(linear.getScale()),
          bias = linear.getB() ? lowering.source(linear.getB()) : Value(),
          y = asMatrix(lowering, op, lowering.target(linear.getY()));
    addStep<plan::MatmulOp>(lowering, op, x, w, bias, scale, Value(), Value(), y, Value(),
                            /*transpose_a=*/false, /*transpose_b=*/true, /*accumulate=*/false,
                            /*gelu=*/false, /*reduced_reduction=*/false, TypeAttr());
    return success();
  }
};

struct LinearGeluLowering
    : plan::PlanLoweringOpInterface::ExternalModel<LinearGeluLowering, LinearGeluOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto linear = cast<LinearGeluOp>(op);
    SmallVector<Value> writes = llvm::map_to_vector(op->getResults(), [&](Value result) {
      return asMatrix(lowering, op, lowering.target(result));
    });
    addLinear(lowering, linear, writes[0], linear.getSaving() ? writes[1] : Value(), /*gelu=*/true,
              TypeAttr());
    return success();
  }
};

struct MatmulLowering : plan::PlanLoweringOpInterface::ExternalModel<MatmulLowering, MatmulOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto matmul = cast<MatmulOp>(op);
    Value a = lowering.source(matmul.getA()), b = lowering.source(matmul.getB());
    Value target = lowering.target(matmul.getC());
    if (matmul.getAddend())
      if (Value addend = lowering.source(matmul.getAddend()); !plan::sameElements(addend, target))
        addCopy(lowering, op, addend, target);
    addStep<plan::MatmulOp>(lowering, op, a, b, Value(), Value(), Value(), Value(), target, Value(),
                            matmul.getTransposeA(), matmul.getTransposeB(),
                            matmul.getAddend() != nullptr, /*gelu=*/false,
                            matmul.getReducedReduction(), computeOf(matmul));
    return success();
  }
};

/// Scales of blocks of many rows with each row of them at a multiple of kScaleBytes. Other scales,
/// whose rows are as long as those of the operand, as they are.
Value scaleRowsApart(Lowering &lowering, Operation *op, Value operand, Value scale) {
  auto type = cast<MemRefType>(scale.getType());
  constexpr int64_t multiple = kScaleBytes / 4;
  const int64_t rows = cast<MemRefType>(operand.getType()).getDimSize(0);
  if (type.getRank() != 2 || type.getDimSize(1) == rows || type.getDimSize(1) % multiple == 0)
    return scale;
  const int64_t stride = llvm::alignTo(type.getDimSize(1), multiple);
  OpBuilder &b = lowering.builder();
  Value whole = lowering.scratch(op, {type.getDimSize(0), stride}, type.getElementType());
  Value place = plan::ViewOp::create(
      b, op->getLoc(),
      plan::bufferType(type.getShape(), SmallVector<int64_t>{stride, 1}, type.getElementType()),
      whole, b.getI64IntegerAttr(0));
  addCopy(lowering, op, scale, place);
  return place;
}

struct QuantizedMatmulLowering
    : plan::PlanLoweringOpInterface::ExternalModel<QuantizedMatmulLowering, QuantizedMatmulOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    SmallVector<Value> reads = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return lowering.source(operand); });
    for (auto [operand, scale] :
         llvm::zip(ArrayRef(reads).take_front(2), MutableArrayRef(reads).drop_front(2)))
      scale = readAt(lowering, op, scaleRowsApart(lowering, op, operand, scale), kScaleBytes);
    addStep<plan::MatmulOp>(lowering, op, reads[0], reads[1], Value(), Value(), reads[2], reads[3],
                            lowering.target(op->getResult(0)), Value(), /*transpose_a=*/false,
                            /*transpose_b=*/true, /*accumulate=*/false, /*gelu=*/false,
                            /*reduced_reduction=*/false, TypeAttr());
    return success();
  }
};

/// Null: none.
template <typename Op> FloatAttr capOf(Op op) {
  const double cap = op.scoreCap();
  return cap > 0.0 ? Builder(op.getContext()).getF64FloatAttr(cap) : FloatAttr();
}

struct AttentionLowering
    : plan::PlanLoweringOpInterface::ExternalModel<AttentionLowering, AttentionOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto attention = cast<AttentionOp>(op);
    Value q = lowering.source(attention.getQ()), k = lowering.source(attention.getK()),
          v = lowering.source(attention.getV());
    Value o = lowering.target(op->getResult(0));
    Value lse = op->getNumResults() > 1 ? lowering.target(op->getResult(1)) : Value();
    addStep<plan::AttentionOp>(lowering, op, q, k, v, o, lse, llvm::APFloat(attention.getScale()),
                               capOf(attention), attention.getCausal(), attention.maskChunk(),
                               attention.maskWindow());
    return success();
  }
};

struct AttentionGradLowering
    : plan::PlanLoweringOpInterface::ExternalModel<AttentionGradLowering, AttentionGradOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto grad = cast<AttentionGradOp>(op);
    SmallVector<Value> args = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return lowering.source(operand); });
    for (Value result : op->getResults())
      args.push_back(lowering.target(result));
    addStep<plan::AttentionGradOp>(lowering, op, args[0], args[1], args[2], args[3], args[4],
                                   args[5], args[6], args[7], args[8], /*workspace=*/Value(),
                                   llvm::APFloat(grad.getScale()), capOf(grad), grad.getCausal(),
                                   grad.maskChunk(), grad.maskWindow());
    return success();
  }
};

/// What is kept is updated in place, or in a copy where its old value is read later.
struct CachedAttentionLowering
    : plan::PlanLoweringOpInterface::ExternalModel<CachedAttentionLowering, CachedAttentionOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto attention = cast<CachedAttentionOp>(op);
    Value q = lowering.source(attention.getQ()), k = lowering.source(attention.getK()),
          v = lowering.source(attention.getV()), at = lowering.source(attention.getPosition());
    auto kept = [&](Value old, Value result) {
      Value from = lowering.source(old), to = lowering.target(result);
      if (!plan::sameElements(from, to))
        addCopy(lowering, op, from, to);
      return to;
    };
    Value keys = kept(attention.getKeys(), attention.getNewKeys());
    Value values = kept(attention.getValues(), attention.getNewValues());
    addStep<plan::CachedAttentionOp>(lowering, op, q, k, v, at, lowering.target(attention.getO()),
                                     keys, values, llvm::APFloat(attention.getScale()),
                                     capOf(attention), attention.maskChunk(),
                                     attention.maskWindow());
    return success();
  }
};

/// Bits of ids are set in place, or in a copy where the old ones are read later.
struct SampleLowering : plan::PlanLoweringOpInterface::ExternalModel<SampleLowering, SampleOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto sample = cast<SampleOp>(op);
    Value old = lowering.source(sample.getSeen()), seen = lowering.target(sample.getNewSeen());
    if (old != seen)
      addCopy(lowering, op, old, seen);
    addStep<plan::SampleOp>(
        lowering, op, lowering.source(sample.getScores()), lowering.source(sample.getTokens()),
        lowering.source(sample.getPosition()), lowering.source(sample.getSettings()),
        lowering.source(sample.getDraw()), lowering.target(sample.getToken()), seen);
    return success();
  }
};

struct EmbeddingGradLowering
    : plan::PlanLoweringOpInterface::ExternalModel<EmbeddingGradLowering, EmbeddingGradOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    Value tokens = lowering.source(op->getOperand(0)), dx = lowering.source(op->getOperand(1));
    addStep<plan::EmbeddingGradOp>(lowering, op, tokens, dx, lowering.target(op->getResult(0)));
    return success();
  }
};

struct CompactLowering : plan::PlanLoweringOpInterface::ExternalModel<CompactLowering, CompactOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto compact = cast<CompactOp>(op);
    Value mask = lowering.source(compact.getMask());
    Value index = lowering.target(op->getResult(0)), place = lowering.target(op->getResult(1));
    addStep<plan::CompactOp>(lowering, op, mask, index, place, lowering.target(op->getResult(2)));
    return success();
  }
};

struct RouteLowering : plan::PlanLoweringOpInterface::ExternalModel<RouteLowering, RouteOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    Value mask = lowering.source(op->getOperand(0));
    SmallVector<Value> to = llvm::map_to_vector(
        op->getResults(), [&](Value result) { return lowering.target(result); });
    addStep<plan::RouteOp>(lowering, op, mask, to[0], to[1], to[2], to[3]);
    return success();
  }
};

/// Counters begin as zeros.
struct CountExponentsLowering
    : plan::PlanLoweringOpInterface::ExternalModel<CountExponentsLowering, CountExponentsOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto counting = cast<CountExponentsOp>(op);
    SmallVector<Value> reads = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return lowering.source(operand); });
    Value counts = lowering.target(counting.getCounts());
    addFill(lowering, op, counts, 0.0);
    addStep<plan::CountExponentsOp>(lowering, op, reads, counts, counting.getFirst(),
                                    counting.getScaled());
    return success();
  }
};

struct GroupedLinearLowering
    : plan::PlanLoweringOpInterface::ExternalModel<GroupedLinearLowering, GroupedLinearOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto linear = cast<GroupedLinearOp>(op);
    Value x = lowering.source(linear.getX()), w = lowering.source(linear.getW()),
          offsets = lowering.source(linear.getOffsets());
    addStep<plan::GroupedLinearOp>(lowering, op, x, w, offsets, lowering.target(linear.getY()),
                                   linear.getTransposed(), computeOf(linear));
    return success();
  }
};

struct GroupedOuterLowering
    : plan::PlanLoweringOpInterface::ExternalModel<GroupedOuterLowering, GroupedOuterOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto outer = cast<GroupedOuterOp>(op);
    Value a = lowering.source(outer.getA()), b = lowering.source(outer.getB()),
          offsets = lowering.source(outer.getOffsets());
    addStep<plan::GroupedOuterOp>(lowering, op, a, b, offsets, lowering.target(outer.getC()),
                                  computeOf(outer));
    return success();
  }
};

/// Libraries read and write rows of transforms as complex numbers, so rows that begin between two
/// of them (what is cut from one row at an odd number, or joined behind an odd number of others)
/// are transformed elsewhere.
template <typename Op>
struct TransformLowering
    : plan::PlanLoweringOpInterface::template ExternalModel<TransformLowering<Op>, Op> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto inverse = dyn_cast<IrfftOp>(op);
    if (inverse && !inverse.getRealEnds())
      return op->emitOpError("has a spectrum whose ends may not be real; expected that "
                             "hydra-lower-losses has made them so");
    Value from = lowering.source(op->getOperand(0)), to = lowering.target(op->getResult(0));
    constexpr int64_t kComplexBytes = 8;
    Value read = readAt(lowering, op, from, kComplexBytes);
    Value written = placeAt(lowering, op, to, kComplexBytes);
    addStep<plan::FftOp>(lowering, op, read, written, static_cast<bool>(inverse));
    if (written != to)
      addCopy(lowering, op, written, to);
    return success();
  }
};

template <typename Op>
struct RecurrenceLowering
    : plan::PlanLoweringOpInterface::template ExternalModel<RecurrenceLowering<Op>, Op> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    SmallVector<Value> reads = llvm::map_to_vector(
        op->getOperands(), [&](Value operand) { return lowering.source(operand); });
    SmallVector<Value> writes = llvm::map_to_vector(
        op->getResults(), [&](Value result) { return lowering.target(result); });
    addStep<plan::LinearRecurrenceOp>(lowering, op, reads, writes, isa<LinearRecurrenceGradOp>(op));
    return success();
  }
};

/// hydra-lower-collectives leaves those that move whole rows of the first axis.
template <typename Op, typename Step>
struct CollectiveLowering
    : plan::PlanLoweringOpInterface::template ExternalModel<CollectiveLowering<Op, Step>, Op> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto collective = cast<Op>(op);
    if (collective.getAxis() != 0)
      return op->emitOpError() << "moves pieces of axis " << collective.getAxis()
                               << "; in memory they lie one after the other along axis 0 alone";
    if (MeshAttr::axesOf(collective.getOver()).size() > 1)
      return op->emitOpError() << "goes over '" << collective.getOver()
                               << "', several axes at once; run hydra-split-gathers first";
    std::optional<MeshAttr> mesh = op->getParentOfType<ModelOp>().getMesh();
    const auto *axis = llvm::find_if(
        mesh->getAxes(), [&](StringAttr name) { return name.getValue() == collective.getOver(); });
    Value x = lowering.source(collective.getX()), y = lowering.target(collective.getY());
    addStep<Step>(lowering, op, x, y, axis - mesh->getAxes().begin(),
                  cast<CollectiveOpInterface>(op).wireBytes());
    return success();
  }
};

struct ConstantLowering
    : plan::PlanLoweringOpInterface::ExternalModel<ConstantLowering, ConstantOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    addFill(lowering, op, lowering.target(op->getResult(0)), cast<ConstantOp>(op).getValue());
    return success();
  }
};

/// `size` elements of `axis` of a buffer from `start`.
Value part(Lowering &lowering, Operation *op, Value buffer, int64_t axis, int64_t start,
           int64_t size) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<int64_t> strides = plan::stridesOf(type), shape(type.getShape());
  shape[axis] = size;
  OpBuilder &b = lowering.builder();
  return plan::ViewOp::create(b, op->getLoc(),
                              plan::bufferType(shape, strides, type.getElementType()), buffer,
                              b.getI64IntegerAttr(start * strides[axis]));
}

struct ConcatLowering : plan::PlanLoweringOpInterface::ExternalModel<ConcatLowering, ConcatOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto concat = cast<ConcatOp>(op);
    Value whole = lowering.target(concat.getY());
    int64_t start = 0;
    for (auto [i, value] : llvm::enumerate(concat.getParts())) {
      int64_t size = build::shapeOf(value)[concat.getAxis()];
      if (!lowering.isInPlace(op, i))
        addCopy(lowering, op, lowering.source(value),
                part(lowering, op, whole, concat.getAxis(), start, size));
      start += size;
    }
    return success();
  }
};

struct PadLowering : plan::PlanLoweringOpInterface::ExternalModel<PadLowering, PadOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto pad = cast<PadOp>(op);
    Value whole = lowering.target(pad.getY());
    int64_t axis = pad.getAxis(), size = build::shapeOf(pad.getX())[axis];
    if (pad.getBefore())
      addFill(lowering, op, part(lowering, op, whole, axis, 0, pad.getBefore()), 0.0);
    if (!lowering.isInPlace(op, 0))
      addCopy(lowering, op, lowering.source(pad.getX()),
              part(lowering, op, whole, axis, pad.getBefore(), size));
    if (pad.getAfter())
      addFill(lowering, op, part(lowering, op, whole, axis, pad.getBefore() + size, pad.getAfter()),
              0.0);
    return success();
  }
};

struct CopyLowering : plan::PlanLoweringOpInterface::ExternalModel<CopyLowering, CopyOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    if (lowering.isInPlace(op, 0))
      return success();
    Value from = lowering.source(op->getOperand(0));
    addStep<plan::CopyOp>(lowering, op, from, lowering.target(op->getResult(0)));
    return success();
  }
};

/// A shape operation that `hydra-assign-layouts` did not make a view: the view it could be of its
/// operand is copied.
template <typename Op>
struct ShapeLowering
    : plan::PlanLoweringOpInterface::template ExternalModel<ShapeLowering<Op>, Op> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto storage = cast<StorageOpInterface>(op);
    Value from = lowering.source(op->getOperand(*storage.viewedOperand()));
    auto type = cast<MemRefType>(from.getType());
    FailureOr<StridedView> view = storage.view(plan::stridesOf(type));
    if (failed(view))
      return op->emitOpError("has no view of its operand");
    OpBuilder &b = lowering.builder();
    Value seen = plan::ViewOp::create(
        b, op->getLoc(),
        plan::bufferType(build::shapeOf(op->getResult(0)), view->strides, type.getElementType()),
        from, b.getI64IntegerAttr(view->offset));
    addStep<plan::CopyOp>(lowering, op, seen, lowering.target(op->getResult(0)));
    return success();
  }
};

} // namespace

void registerLibraryLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HydraDialect *) {
    LinearOp::attachInterface<LinearLowering>(*context);
    LinearGeluOp::attachInterface<LinearGeluLowering>(*context);
    MatmulOp::attachInterface<MatmulLowering>(*context);
    QuantizedMatmulOp::attachInterface<QuantizedMatmulLowering>(*context);
    ScaledLinearOp::attachInterface<ScaledLinearLowering>(*context);
    AttentionOp::attachInterface<AttentionLowering>(*context);
    AttentionGradOp::attachInterface<AttentionGradLowering>(*context);
    CachedAttentionOp::attachInterface<CachedAttentionLowering>(*context);
    SampleOp::attachInterface<SampleLowering>(*context);
    EmbeddingGradOp::attachInterface<EmbeddingGradLowering>(*context);
    CompactOp::attachInterface<CompactLowering>(*context);
    RouteOp::attachInterface<RouteLowering>(*context);
    CountExponentsOp::attachInterface<CountExponentsLowering>(*context);
    GroupedLinearOp::attachInterface<GroupedLinearLowering>(*context);
    GroupedOuterOp::attachInterface<GroupedOuterLowering>(*context);
    RfftOp::attachInterface<TransformLowering<RfftOp>>(*context);
    IrfftOp::attachInterface<TransformLowering<IrfftOp>>(*context);
    LinearRecurrenceOp::attachInterface<RecurrenceLowering<LinearRecurrenceOp>>(*context);
    LinearRecurrenceGradOp::attachInterface<RecurrenceLowering<LinearRecurrenceGradOp>>(*context);
    AllGatherOp::attachInterface<CollectiveLowering<AllGatherOp, plan::AllGatherOp>>(*context);
    AllToAllOp::attachInterface<CollectiveLowering<AllToAllOp, plan::AllToAllOp>>(*context);
    ConstantOp::attachInterface<ConstantLowering>(*context);
    ConcatOp::attachInterface<ConcatLowering>(*context);
    PadOp::attachInterface<PadLowering>(*context);
    CopyOp::attachInterface<CopyLowering>(*context);
    BroadcastOp::attachInterface<ShapeLowering<BroadcastOp>>(*context);
    ReshapeOp::attachInterface<ShapeLowering<ReshapeOp>>(*context);
    TransposeOp::attachInterface<ShapeLowering<TransposeOp>>(*context);
    SliceOp::attachInterface<ShapeLowering<SliceOp>>(*context);
  });
}

} // namespace hydra
