// hydra-differentiate: adds the backward pass to programs.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"

namespace {

/// Marks everything that is built as belonging to the backward phase.
struct BackwardPhase : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    op->setLoc(withPhase(op->getLoc(), "backward"));
  }
};

struct Differentiate : impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    ModelOp model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    FailureOr<SmallVector<EntryOp>> entries =
        findPrograms(model, SmallVector<std::string>(programs.begin(), programs.end()));
    if (failed(entries))
      return signalPassFailure();
    for (EntryOp entry : *entries)
      if (failed(differentiate(model, entry)))
        return signalPassFailure();
  }

private:
  LogicalResult differentiate(ModelOp model, EntryOp entry) {
    if (entry.getStage())
      return entry.emitOpError() << "@" << entry.getSymName() << " is a " << *entry.getStage()
                                 << " program already";
    Block &body = entry.getBody().front();
    ReturnOp end = entry.getReturn();
    Value loss = end.getOutput("loss");
    if (!loss || !build::shapeOf(loss).empty() || !build::typeOf(loss).getElementType().isF32())
      return entry.emitOpError() << "@" << entry.getSymName()
                                 << " has no scalar f32 output 'loss' to differentiate";
    if (failed(findActive(body)))
      return failure();

    gradients.clear();
    BackwardPhase phase;
    OpBuilder b(end);
    b.setListener(&phase);
    Value one = build::constant(b, loss.getLoc(), loss.getType(), 1.0);
    gradients[loss] = {one};
    SmallVector<Operation *> forward;
    for (Operation &op : body)
      if (!llvm::is_contained({end.getOperation(), one.getDefiningOp()}, &op))
        forward.push_back(&op);
    DenseMap<Attribute, SmallVector<Value>> parameterGradients;
    for (Operation *op : llvm::reverse(forward))
      if (failed(pullBack(b, op, parameterGradients)))
        return failure();

    SmallVector<Attribute> names(end.getOutputNames().begin(), end.getOutputNames().end());
    SmallVector<Value> values(end.getOutputs());
    for (ParamOp param : model.getBody().getOps<ParamOp>()) {
      Value gradient = sum(b, parameterGradients.lookup(param.getSymNameAttr()));
      if (!gradient)
        gradient = build::constant(b, param.getLoc(), param.getBoundType(), 0.0);
      names.push_back(b.getStringAttr("grad." + param.getSymName()));
      values.push_back(gradient);
    }
    values.append(end.getUpdates().begin(), end.getUpdates().end());
    end.getValuesMutable().assign(values);
    end.setOutputNamesAttr(b.getArrayAttr(names));
    entry.setStage("grad");
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&op))
        op.erase();
    return success();
  }

  /// Finds the values that depend on a parameter.
  LogicalResult findActive(Block &body) {
    active.clear();
    for (Operation &op : body) {
      if (isa<ForOp, WhenOp>(op))
        return op.emitOpError("cannot be differentiated; run hydra-unroll-layers first");
      auto use = dyn_cast<UseOp>(op);
      bool depends =
          use ? isa<ParamOp>(use.lookup())
              : llvm::any_of(op.getOperands(), [&](Value v) { return active.contains(v); });
      if (!depends)
        continue;
      for (Value result : op.getResults())
        if (isa<FloatType>(build::typeOf(result).getElementType()))
          active.insert(result);
    }
    return success();
  }

  /// The sum of all that was handed on to a value; null for nothing.
  Value sum(OpBuilder &b, ArrayRef<Value> parts) {
    SmallVector<Value> rest(parts);
    Value sum = joinSlices(b, rest);
    for (Value part : rest)
      sum = sum ? AddOp::create(b, part.getLoc(), sum, part) : part;
    return sum;
  }

  /// Gradients of slices that together are the whole value need no sum of padded tensors: they are
  /// put side by side, and taken out of `parts`.
  Value joinSlices(OpBuilder &b, SmallVectorImpl<Value> &parts) {
    auto first = llvm::find_if(parts, [](Value v) { return v.getDefiningOp<PadOp>() != nullptr; });
    if (first == parts.end() || parts.size() < 2)
      return {};
    const Attribute axisAttr = first->getDefiningOp<PadOp>().getAxisAttr();
    const int64_t axis = first->getDefiningOp<PadOp>().getAxis(),
                  whole = build::shapeOf(*first)[axis];
    // From the last slice to the first: which begins a row of slices that ends where the value
    // does.
    SmallVector<PadOp> pads;
    for (Value part : parts)
      if (auto pad = part.getDefiningOp<PadOp>(); pad && pad.getAxisAttr() == axisAttr)
        pads.push_back(pad);
    llvm::stable_sort(pads, [](PadOp x, PadOp y) { return x.getBefore() > y.getBefore(); });
    auto endOf = [&](PadOp pad) { return pad.getBefore() + build::shapeOf(pad.getX())[axis]; };
    DenseMap<int64_t, PadOp> from; // where it begins
    for (PadOp pad : pads)
      if (endOf(pad) == whole || from.count(endOf(pad)))
        from.try_emplace(pad.getBefore(), pad);
    if (!from.count(0))
      return {};
    SmallVector<Value> slices;
    for (int64_t end = 0; end < whole; end = endOf(from[end])) {
      slices.push_back(from[end].getX());
      parts.erase(llvm::find(parts, from[end].getResult()));
    }
    return ConcatOp::create(b, slices.back().getLoc(), slices, axisAttr);
  }

  /// Hands the gradients of an operation's results on to its operands.
  LogicalResult pullBack(OpBuilder &b, Operation *op,
                         DenseMap<Attribute, SmallVector<Value>> &parameterGradients) {
    SmallVector<Value> incoming =
        llvm::map_to_vector(op->getResults(), [&](Value v) { return sum(b, gradients.lookup(v)); });
    if (llvm::none_of(incoming, [](Value v) { return static_cast<bool>(v); }) ||
        llvm::none_of(op->getResults(), [&](Value v) { return active.contains(v); }))
      return success();
    if (auto use = dyn_cast<UseOp>(op)) {
      parameterGradients[use.getVariableAttr().getAttr()].push_back(incoming[0]);
      return success();
    }
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError("lies between a parameter and the loss but has no derivative");
    if (llvm::any_of(ArrayRef(incoming).drop_front(), [](Value v) { return v != nullptr; }))
      return op->emitOpError(
          "saves statistics on which the loss depends; only its first result has "
          "a derivative");
    OpBuilder forwardBuilder(op);
    Operation *saving = differentiable.saveForBackward(forwardBuilder);
    incoming.resize(saving->getNumResults());
    SmallVector<Value> outgoing(saving->getNumOperands());
    cast<DifferentiableOpInterface>(saving).vjp(b, incoming, outgoing);
    for (auto [operand, gradient] : llvm::zip(saving->getOperands(), outgoing))
      if (gradient && active.contains(operand))
        gradients[operand].push_back(gradient);
    ++products;
    return success();
  }

  DenseSet<Value> active;
  DenseMap<Value, SmallVector<Value>> gradients;
};

} // namespace
} // namespace hydra
