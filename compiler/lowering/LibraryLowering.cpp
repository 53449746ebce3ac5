// Operations that become calls of the executor's library functions (runtime/calls/*.cpp say what
// each takes).
#include "compiler/lowering/LibraryLowering.h"

#include "dialects/hydra/Build.h"
#include "dialects/plan/Plan.h"
#include "runtime/calls/AttentionCall.h"

using namespace mlir;

namespace hydra {

namespace {

using plan::Lowering;

SmallVector<Value> sources(Lowering &lowering, ValueRange values) {
  return llvm::map_to_vector(values, [&](Value v) { return lowering.source(v); });
}
SmallVector<Value> targets(Lowering &lowering, ValueRange values) {
  return llvm::map_to_vector(values, [&](Value v) { return lowering.target(v); });
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

struct LinearLowering : plan::PlanLoweringOpInterface::ExternalModel<LinearLowering, LinearOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    Builder b(op->getContext());
    SmallVector<Value> reads = sources(lowering, op->getOperands());
    reads.front() = asMatrix(lowering, op, reads.front());
    SmallVector<NamedAttribute> attributes{b.getNamedAttr("transpose_b", b.getUnitAttr())};
    if (cast<LinearOp>(op).getReducedReduction())
      attributes.push_back(b.getNamedAttr("reduced_reduction", b.getUnitAttr()));
    lowering.call(op, "matmul", reads, {asMatrix(lowering, op, lowering.target(op->getResult(0)))},
                  attributes);
    return success();
  }
};

struct LinearGeluLowering
    : plan::PlanLoweringOpInterface::ExternalModel<LinearGeluLowering, LinearGeluOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    Builder b(op->getContext());
    auto linear = cast<LinearGeluOp>(op);
    SmallVector<Value> reads = sources(lowering, op->getOperands());
    reads.front() = asMatrix(lowering, op, reads.front());
    SmallVector<Value> writes;
    for (Value result : op->getResults())
      writes.push_back(asMatrix(lowering, op, lowering.target(result)));
    SmallVector<NamedAttribute> attributes{b.getNamedAttr("transpose_b", b.getUnitAttr()),
                                           b.getNamedAttr("gelu", b.getUnitAttr())};
    if (linear.getSaving())
      attributes.push_back(b.getNamedAttr("saving", b.getUnitAttr()));
    if (linear.getReducedReduction())
      attributes.push_back(b.getNamedAttr("reduced_reduction", b.getUnitAttr()));
    lowering.call(op, "matmul", reads, writes, attributes);
    return success();
  }
};

struct MatmulLowering : plan::PlanLoweringOpInterface::ExternalModel<MatmulLowering, MatmulOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto matmul = cast<MatmulOp>(op);
    Builder b(op->getContext());
    SmallVector<NamedAttribute> attributes;
    if (matmul.getTransposeA())
      attributes.push_back(b.getNamedAttr("transpose_a", b.getUnitAttr()));
    if (matmul.getTransposeB())
      attributes.push_back(b.getNamedAttr("transpose_b", b.getUnitAttr()));
    if (matmul.getReducedReduction())
      attributes.push_back(b.getNamedAttr("reduced_reduction", b.getUnitAttr()));
    SmallVector<Value> reads = sources(lowering, {matmul.getA(), matmul.getB()});
    Value target = lowering.target(matmul.getC());
    if (!matmul.getAddend()) {
      lowering.call(op, "matmul", reads, {target}, attributes);
      return success();
    }
    if (Value addend = lowering.source(matmul.getAddend()); addend != target)
      lowering.call(op, "copy", {addend}, {target});
    attributes.push_back(b.getNamedAttr("accumulate", b.getUnitAttr()));
    lowering.update(op, "matmul", reads, {target}, attributes);
    return success();
  }
};

template <typename Op> SmallVector<NamedAttribute> attentionAttributes(Op op) {
  Builder b(op.getContext());
  SmallVector<NamedAttribute> attributes{b.getNamedAttr("scale", b.getF64FloatAttr(op.getScale()))};
  if (op.getCausal())
    attributes.push_back(b.getNamedAttr("causal", b.getUnitAttr()));
  if (op.maskChunk())
    attributes.push_back(b.getNamedAttr("chunk", b.getI64IntegerAttr(op.maskChunk())));
  if (op.maskWindow())
    attributes.push_back(b.getNamedAttr("window", b.getI64IntegerAttr(op.maskWindow())));
  return attributes;
}

struct AttentionLowering
    : plan::PlanLoweringOpInterface::ExternalModel<AttentionLowering, AttentionOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    lowering.call(op, "attention", sources(lowering, op->getOperands()),
                  targets(lowering, op->getResults()), attentionAttributes(cast<AttentionOp>(op)));
    return success();
  }
};

/// Bytes of workspace of the CPU's attention_grad.
int64_t attentionGradWorkspace(AttentionGradOp op) {
  ArrayRef<int64_t> q = build::shapeOf(op.getQ()), k = build::shapeOf(op.getK()),
                    v = build::shapeOf(op.getV());
  runtime::AttentionShape shape;
  shape.batch = q[0];
  shape.queries = q[1];
  shape.heads = q[2];
  shape.headDim = q[3];
  shape.keys = k[1];
  shape.kvHeads = k[2];
  shape.valueDim = v[3];
  return runtime::attentionWorkspaceBytes(shape,
                                          build::typeOf(op.getDq()).getElementType().isF32());
}

struct AttentionGradLowering
    : plan::PlanLoweringOpInterface::ExternalModel<AttentionGradLowering, AttentionGradOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    auto grad = cast<AttentionGradOp>(op);
    SmallVector<Value> reads = sources(lowering, op->getOperands());
    SmallVector<Value> writes = targets(lowering, op->getResults());
    writes.push_back(lowering.scratch(op, {attentionGradWorkspace(grad) / 4},
                                      Float32Type::get(op->getContext())));
    lowering.call(op, "attention_grad", reads, writes, attentionAttributes(grad));
    return success();
  }
};

struct EmbeddingGradLowering
    : plan::PlanLoweringOpInterface::ExternalModel<EmbeddingGradLowering, EmbeddingGradOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    lowering.call(op, "embedding_grad", sources(lowering, op->getOperands()),
                  targets(lowering, op->getResults()));
    return success();
  }
};

struct CompactLowering : plan::PlanLoweringOpInterface::ExternalModel<CompactLowering, CompactOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    lowering.call(op, "compact", sources(lowering, op->getOperands()),
                  targets(lowering, op->getResults()));
    return success();
  }
};

void fill(Operation *op, Lowering &lowering, Value target, double value) {
  Builder b(op->getContext());
  lowering.call(op, "fill", {}, {target}, {b.getNamedAttr("value", b.getF64FloatAttr(value))});
}

struct ConstantLowering
    : plan::PlanLoweringOpInterface::ExternalModel<ConstantLowering, ConstantOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    fill(op, lowering, lowering.target(op->getResult(0)), cast<ConstantOp>(op).getValue());
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
        lowering.call(op, "copy", {lowering.source(value)},
                      {part(lowering, op, whole, concat.getAxis(), start, size)});
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
      fill(op, lowering, part(lowering, op, whole, axis, 0, pad.getBefore()), 0.0);
    lowering.call(op, "copy", {lowering.source(pad.getX())},
                  {part(lowering, op, whole, axis, pad.getBefore(), size)});
    if (pad.getAfter())
      fill(op, lowering, part(lowering, op, whole, axis, pad.getBefore() + size, pad.getAfter()),
           0.0);
    return success();
  }
};

struct CopyLowering : plan::PlanLoweringOpInterface::ExternalModel<CopyLowering, CopyOp> {
  LogicalResult lowerToPlan(Operation *op, Lowering &lowering) const {
    lowering.call(op, "copy", sources(lowering, op->getOperands()),
                  targets(lowering, op->getResults()));
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
    lowering.call(op, "copy", {seen}, {lowering.target(op->getResult(0))});
    return success();
  }
};

} // namespace

void registerLibraryLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HydraDialect *) {
    LinearOp::attachInterface<LinearLowering>(*context);
    LinearGeluOp::attachInterface<LinearGeluLowering>(*context);
    MatmulOp::attachInterface<MatmulLowering>(*context);
    AttentionOp::attachInterface<AttentionLowering>(*context);
    AttentionGradOp::attachInterface<AttentionGradLowering>(*context);
    EmbeddingGradOp::attachInterface<EmbeddingGradLowering>(*context);
    CompactOp::attachInterface<CompactLowering>(*context);
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
