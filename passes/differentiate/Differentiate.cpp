// hydra-differentiate: adds the backward pass to programs.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/OutputNames.h"
#include "passes/Passes.h"
#include "passes/bind/ValueTags.h"
#include "passes/differentiate/LossScaling.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallBitVector.h"

#include <map>

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"

namespace {

/// Marks everything that is built as belonging to the backward phase, and as gradients.
struct BackwardPhase : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    Location loc = withPhase(op->getLoc(), Phase::backward);
    if (!repeats)
      loc = withCategory(madeBy("hydra-differentiate", loc), Category::act_grad);
    op->setLoc(loc);
  }

  bool repeats = false; ///< it is what the forward pass has computed as well
};

/// What the gradient of a parameter is made by, also in the body of a loop.
void tagGradient(Value gradient) {
  tagMade(gradient, Category::grad);
  while (Operation *op = gradient.getDefiningOp()) {
    if (auto loop = dyn_cast<LoopOp>(op))
      return tagGradient(
          loop.getEntry().getReturn().getOutputs()[cast<OpResult>(gradient).getResultNumber()]);
    if ((classOf(op) != OpClass::copy_cast && !isa<CastOp>(op)) || op->getNumOperands() == 0)
      return;
    gradient = op->getOperand(0);
  }
}

/// The derivative of one loop's body, for the same operands with gradients and results that have
/// them.
struct LoopDerivative {
  EntryOp saving;              ///< the body that also hands out what it is given
  SmallVector<unsigned> saved; ///< carried values that it hands out, behind what it joins
  EntryOp reverse;             ///< what runs backwards
  SmallVector<unsigned>
      sequences; ///< operands of the loop that it cuts into chunks, before the saved,
  SmallVector<unsigned> incoming; ///< the gradients of these joined results,
  SmallVector<unsigned> kept;     ///< and other operands that it reads
  SmallVector<unsigned> outSequences, outCarried, outKept; ///< operands whose gradients it makes
};

/// Derivatives of the bodies of loops; loops over the same body share them.
using LoopDerivatives = std::map<std::string, LoopDerivative>;

bool isTrained(Operation *variable) {
  auto param = dyn_cast<ParamOp>(variable);
  return param && !param.getFrozen();
}

/// Goes back through the operations of a block.
class BackwardPass {
public:
  explicit BackwardPass(LoopDerivatives &loops) : loops(loops) {}

  DenseSet<Value> active; ///< values that depend on what the derivative is by
  DenseMap<Value, SmallVector<Value>> gradients;
  DenseMap<Attribute, SmallVector<Value>> parameterGradients;
  unsigned products = 0;

  /// Adds all that depends on parameters and on active values.
  LogicalResult findActive(Block &body) {
    for (Operation &op : body) {
      if (isa<ForOp, WhenOp>(op))
        return op.emitOpError("cannot be differentiated; run hydra-unroll-layers first");
      auto use = dyn_cast<UseOp>(op);
      bool depends =
          use ? isTrained(use.lookup())
              : llvm::any_of(op.getOperands(), [&](Value v) { return active.contains(v); });
      if (!depends)
        continue;
      for (Value result : op.getResults())
        if (hasFloats(result))
          active.insert(result);
    }
    return success();
  }

  /// Hands gradients on from the last of these operations to the first; builds with `b`.
  LogicalResult run(OpBuilder &b, ArrayRef<Operation *> forward) {
    for (Operation *op : llvm::reverse(forward))
      if (failed(pullBack(b, op)))
        return failure();
    return success();
  }

  /// The gradient that was handed on to a value; null for none.
  Value gradientOf(OpBuilder &b, Value v) { return sum(b, gradients.lookup(v)); }

  /// The sum of several gradients; null for none.
  static Value sum(OpBuilder &b, ArrayRef<Value> parts) {
    SmallVector<Value> rest(parts);
    Value sum = joinSlices(b, rest);
    for (Value part : rest)
      sum = sum ? AddOp::create(b, part.getLoc(), sum, part) : part;
    return sum;
  }

private:
  static bool hasFloats(Value v) { return isa<FloatType>(build::typeOf(v).getElementType()); }

  /// Gradients of slices of different elements need no sum of padded tensors: they are put side by
  /// side, with zeros in gaps between them, and taken out of `parts`.
  static Value joinSlices(OpBuilder &b, SmallVectorImpl<Value> &parts) {
    auto first = llvm::find_if(parts, [](Value v) { return v.getDefiningOp<PadOp>() != nullptr; });
    if (first == parts.end() || parts.size() < 2)
      return {};
    const RankedTensorType type = build::typeOf(*first);
    const Attribute axisAttr = first->getDefiningOp<PadOp>().getAxisAttr();
    const int64_t axis = first->getDefiningOp<PadOp>().getAxis(), whole = type.getShape()[axis];
    auto endOf = [&](PadOp pad) { return pad.getBefore() + build::shapeOf(pad.getX())[axis]; };
    std::map<int64_t, PadOp> slices; // by where it begins
    for (Value part : parts) {
      auto pad = part.getDefiningOp<PadOp>();
      if (!pad || pad.getAxisAttr() != axisAttr || pad.getType() != type)
        continue;
      auto next = slices.lower_bound(pad.getBefore());
      if ((next == slices.end() || endOf(pad) <= next->first) &&
          (next == slices.begin() || endOf(std::prev(next)->second) <= pad.getBefore()))
        slices.emplace(pad.getBefore(), pad);
    }
    if (slices.size() < 2)
      return {};
    SmallVector<Value> pieces;
    int64_t end = 0;
    const Location loc = slices.rbegin()->second.getLoc(), ofGaps = first->getLoc();
    auto fillTo = [&](int64_t start) {
      SmallVector<int64_t> gap(type.getShape());
      gap[axis] = start - end;
      if (gap[axis] > 0)
        pieces.push_back(build::constant(b, ofGaps, type.clone(gap), 0.0));
    };
    for (auto [start, pad] : slices) {
      fillTo(start);
      pieces.push_back(pad.getX());
      end = endOf(pad);
      parts.erase(llvm::find(parts, pad.getResult()));
    }
    fillTo(whole);
    return ConcatOp::create(b, loc, pieces, axisAttr);
  }

  /// Hands the gradients of an operation's results on to its operands.
  LogicalResult pullBack(OpBuilder &b, Operation *op) {
    SmallVector<Value> incoming =
        llvm::map_to_vector(op->getResults(), [&](Value v) { return gradientOf(b, v); });
    if (llvm::none_of(incoming, [](Value v) { return static_cast<bool>(v); }) ||
        llvm::none_of(op->getResults(), [&](Value v) { return active.contains(v); }))
      return success();
    if (auto use = dyn_cast<UseOp>(op)) {
      parameterGradients[use.getVariableAttr().getAttr()].push_back(incoming[0]);
      return success();
    }
    if (auto loop = dyn_cast<LoopOp>(op))
      return pullBackLoop(b, loop, incoming);
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

  //===-- Loops -----------------------------------------------------------------------------===//

  /// The derivative of a loop is a loop from the last chunk to the first. Each iteration computes
  /// again what the forward one did, from the carried values that it was given.
  LogicalResult pullBackLoop(OpBuilder &b, LoopOp loop, ArrayRef<Value> incoming) {
    ScanAttr scan = loop.getScan();
    const size_t over = scan.getOver().size(), stacked = scan.getStacked().size();
    FailureOr<LoopDerivative *> found = derivativeOf(loop, incoming);
    if (failed(found))
      return failure();
    LoopDerivative &d = **found;

    LoopOp saving = loop;
    if (!d.saved.empty()) {
      OpBuilder forward(loop);
      saving = LoopOp::create(forward, loop.getLoc(), d.saving, loop.getInputs());
      for (auto [i, result] : llvm::enumerate(loop.getResults()))
        result.replaceAllUsesWith(saving.getResult(i < stacked ? i : i + d.saved.size()));
    }
    SmallVector<Value> inputs;
    for (unsigned i : d.sequences)
      inputs.push_back(saving.getInputs()[i]);
    llvm::append_range(inputs, saving.getResults().slice(stacked, d.saved.size()));
    for (unsigned i : d.incoming)
      inputs.push_back(incoming[i]);
    auto zero = [&](Value like) { return build::constant(b, loop.getLoc(), like.getType(), 0.0); };
    for (unsigned i : d.outCarried) {
      Value gradient = incoming[stacked + i - over];
      inputs.push_back(gradient ? gradient : zero(saving.getInputs()[i]));
    }
    for (unsigned i : d.outKept)
      inputs.push_back(zero(saving.getInputs()[i]));
    for (unsigned i : d.kept)
      inputs.push_back(saving.getInputs()[i]);
    auto reverse = LoopOp::create(b, loop.getLoc(), d.reverse, inputs);
    size_t result = 0;
    for (ArrayRef<unsigned> operands :
         {ArrayRef<unsigned>(d.outSequences), ArrayRef<unsigned>(d.outCarried),
          ArrayRef<unsigned>(d.outKept)})
      for (unsigned i : operands) {
        if (Value operand = saving.getInputs()[i]; active.contains(operand))
          gradients[operand].push_back(reverse.getResult(result));
        ++result;
      }
    if (saving != loop)
      loop.erase();
    ++products;
    return success();
  }

  FailureOr<LoopDerivative *> derivativeOf(LoopOp loop, ArrayRef<Value> incoming) {
    EntryOp body = loop.getEntry();
    llvm::SmallBitVector activeArguments(loop.getInputs().size());
    for (auto [i, input] : llvm::enumerate(loop.getInputs()))
      activeArguments[i] = active.contains(input);
    if (failed(followCarried(body, activeArguments)))
      return failure();
    std::string key = body.getSymName().str() + "|";
    for (unsigned i = 0; i < activeArguments.size(); ++i)
      key += activeArguments[i] ? '1' : '0';
    llvm::SmallBitVector given(body.getScan()->getStacked().size());
    for (unsigned i = 0; i < given.size(); ++i) {
      given[i] = incoming[i] != nullptr;
      key += given[i] ? 'g' : '-';
    }
    auto [known, isNew] = loops.try_emplace(key);
    if (isNew && failed(build(body, activeArguments, given, known->second)))
      return failure();
    return &known->second;
  }

  /// A carried value is active if it is after any iteration.
  LogicalResult followCarried(EntryOp body, llvm::SmallBitVector &arguments) {
    const size_t over = body.getScan()->getOver().size();
    const size_t stacked = body.getScan()->getStacked().size();
    for (bool changed = true; changed;) {
      changed = false;
      BackwardPass inside(loops);
      for (unsigned i : arguments.set_bits())
        inside.active.insert(body.getBody().getArgument(i));
      if (failed(inside.findActive(body.getBody().front())))
        return failure();
      for (auto [i, value] : llvm::enumerate(body.getReturn().getOutputs().drop_front(stacked)))
        if (!arguments[over + i] && inside.active.contains(value))
          changed = arguments[over + i] = true;
    }
    return success();
  }

  LogicalResult build(EntryOp body, const llvm::SmallBitVector &activeArguments,
                      const llvm::SmallBitVector &given, LoopDerivative &d) {
    ScanAttr scan = *body.getScan();
    Block &forward = body.getBody().front();
    ReturnOp end = body.getReturn();
    const unsigned sequences = scan.getOver().size(), carried = scan.getCarried(),
                   joined = scan.getStacked().size(), arguments = forward.getNumArguments();
    Location loc = withPhase(body.getLoc(), Phase::backward);

    // Arguments: what the forward body has, chunks of what was carried, and gradients.
    SmallVector<RankedTensorType> types;
    SmallVector<int64_t> axes(scan.getOver());
    for (unsigned i = 0; i < sequences; ++i)
      types.push_back(build::typeOf(forward.getArgument(i)));
    for (unsigned i = 0; i < carried; ++i) {
      types.push_back(withLeadingOne(build::typeOf(forward.getArgument(sequences + i))));
      axes.push_back(0);
    }
    for (unsigned i : given.set_bits()) {
      types.push_back(build::typeOf(end.getOutputs()[i]));
      axes.push_back(scan.getStacked()[i]);
      d.incoming.push_back(i);
    }
    for (unsigned i : activeArguments.set_bits()) {
      (i < sequences             ? d.outSequences
       : i < sequences + carried ? d.outCarried
                                 : d.outKept)
          .push_back(i);
      if (i >= sequences)
        types.push_back(build::typeOf(forward.getArgument(i)));
    }
    for (unsigned i = sequences + carried; i < arguments; ++i)
      types.push_back(build::typeOf(forward.getArgument(i)));
    SmallVector<int64_t> outAxes;
    for (unsigned i : d.outSequences)
      outAxes.push_back(scan.getOver()[i]);
    auto reversed = [&](ArrayRef<int64_t> over) {
      return ScanAttr::get(body.getContext(), scan.getCount(), over,
                           d.outCarried.size() + d.outKept.size(), outAxes, !scan.getReverse());
    };
    d.reverse =
        build::loopBody(body, (body.getSymName() + "_backward").str(), loc, reversed(axes), types);
    Block &block = d.reverse.getBody().front();

    BackwardPhase phase;
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    b.setListener(&phase);
    IRMapping mapping;
    BackwardPass inside(loops);
    for (unsigned i = 0; i < arguments; ++i) {
      Value value =
          i < sequences ? block.getArgument(i)
          : i < sequences + carried
              ? build::reshape(b, loc, block.getArgument(i), build::shapeOf(forward.getArgument(i)))
              : block.getArgument(block.getNumArguments() - arguments + i);
      mapping.map(forward.getArgument(i), value);
      if (activeArguments[i])
        inside.active.insert(value);
    }
    SmallVector<Operation *> again;
    phase.repeats = true;
    for (Operation &op : forward.without_terminator())
      again.push_back(b.clone(op, mapping));
    phase.repeats = false;
    if (failed(inside.findActive(block)))
      return failure();
    auto give = [&](unsigned result, Value gradient) {
      Value value = mapping.lookup(end.getOutputs()[result]);
      if (inside.active.contains(value))
        inside.gradients[value].push_back(gradient);
    };
    unsigned next = sequences + carried;
    for (unsigned i : d.incoming)
      give(i, block.getArgument(next++));
    for (unsigned i : d.outCarried)
      give(joined + i - sequences, block.getArgument(next++));
    if (failed(inside.run(b, again)))
      return failure();
    products += inside.products;

    SmallVector<Value> results;
    for (unsigned i : activeArguments.set_bits()) {
      Value value = mapping.lookup(forward.getArgument(i));
      SmallVector<Value> parts = inside.gradients.lookup(value);
      if (i >= sequences + carried) // what earlier iterations added is carried
        parts.insert(parts.begin(), block.getArgument(next++));
      Value gradient = i < sequences ? sum(b, parts) : sumIntoMatmuls(b, parts);
      results.push_back(gradient ? gradient : build::constant(b, loc, value.getType(), 0.0));
    }
    build::endLoopBody(d.reverse, results);
    eraseDead(block);

    // What it does not read it need not be given.
    SmallVector<int64_t> left;
    for (unsigned i = 0; i < axes.size(); ++i) {
      if (i >= sequences + carried || !block.getArgument(i).use_empty()) {
        left.push_back(axes[i]);
        if (i < sequences)
          d.sequences.push_back(i);
        else if (i < sequences + carried)
          d.saved.push_back(i - sequences);
      }
    }
    for (unsigned i = sequences + carried; i < arguments; ++i)
      if (!block.getArgument(block.getNumArguments() - arguments + i).use_empty())
        d.kept.push_back(i);
    for (unsigned i = block.getNumArguments(); i-- > 0;) {
      const bool fixed = i >= sequences + carried && i < next; // gradients and their sums
      if (!fixed && block.getArgument(i).use_empty())
        d.reverse.eraseArgument(i);
    }
    d.reverse.setScanAttr(reversed(left));
    d.saving = savingBody(body, d.saved);
    return success();
  }

  /// The sum of gradients that are carried on: matmuls add to it what they make.
  static Value sumIntoMatmuls(OpBuilder &b, ArrayRef<Value> parts) {
    auto ownMatmul = [](Value part) {
      auto matmul = part.getDefiningOp<MatmulOp>();
      bool adds = matmul && part.use_empty() && !matmul.getAddend() &&
                  build::typeOf(part).getElementType().isF32();
      return adds ? matmul : MatmulOp();
    };
    SmallVector<Value> others;
    llvm::copy_if(parts, std::back_inserter(others), [&](Value part) { return !ownMatmul(part); });
    Value total = sum(b, others);
    for (Value part : parts) {
      MatmulOp matmul = ownMatmul(part);
      if (matmul && !total)
        total = part;
      else if (matmul)
        total = MatmulOp::create(b, part.getLoc(), matmul.getA(), matmul.getB(), total,
                                 matmul.getTransposeAAttr(), matmul.getTransposeBAttr(),
                                 TypeAttr::get(b.getF32Type()), UnitAttr(),
                                 matmul.getFullPrecisionAttr(), matmul.getComputeAttr());
    }
    return total;
  }

  static RankedTensorType withLeadingOne(RankedTensorType type) {
    SmallVector<int64_t> shape{1};
    llvm::append_range(shape, type.getShape());
    return type.clone(shape);
  }

  /// A copy of the body that also joins the carried values that it is given.
  static EntryOp savingBody(EntryOp body, ArrayRef<unsigned> saved) {
    if (saved.empty())
      return body;
    ScanAttr scan = *body.getScan();
    SmallVector<int64_t> axes(scan.getStacked());
    axes.append(saved.size(), 0);
    IRMapping mapping;
    EntryOp saving = bodyLike(body, (body.getSymName() + "_saving").str(),
                              ScanAttr::get(body.getContext(), scan.getCount(), scan.getOver(),
                                            scan.getCarried(), axes, scan.getReverse()),
                              mapping);
    Block &block = saving.getBody().front();
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    SmallVector<Value> results;
    for (unsigned i : saved) {
      Value value = block.getArgument(scan.getOver().size() + i);
      results.push_back(build::reshape(b, withCategory(body.getLoc(), Category::act_ckpt), value,
                                       withLeadingOne(build::typeOf(value)).getShape()));
    }
    for (Operation &op : body.getBody().front().without_terminator())
      b.clone(op, mapping);
    SmallVector<Value> all = llvm::map_to_vector(body.getReturn().getOutputs(),
                                                 [&](Value v) { return mapping.lookup(v); });
    all.insert(all.begin() + scan.getStacked().size(), results.begin(), results.end());
    build::endLoopBody(saving, all);
    return saving;
  }

  LoopDerivatives &loops;
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
    eraseUnusedBodies(model);
  }

private:
  LogicalResult differentiate(ModelOp model, EntryOp entry) {
    if (entry.getStage())
      return entry.emitOpError() << "@" << entry.getSymName() << " is a "
                                 << stringifyProgramStage(*entry.getStage()) << " program already";
    Block &body = entry.getBody().front();
    ReturnOp end = entry.getReturn();
    Value loss = end.getOutput(kLossOutput);
    auto params = model.getBody().getOps<ParamOp>();
    if (!params.empty() && llvm::none_of(params, isTrained))
      return entry.emitOpError()
             << "@" << entry.getSymName()
             << " has nothing to be differentiated by: all parameters are frozen";
    if (!loss || !build::shapeOf(loss).empty() || !build::typeOf(loss).getElementType().isF32())
      return entry.emitOpError() << "@" << entry.getSymName()
                                 << " has no scalar f32 output 'loss' to differentiate";
    BackwardPass pass(loops);
    if (failed(pass.findActive(body)))
      return failure();
    SmallVector<Operation *> forward;
    for (Operation &op : body.without_terminator())
      forward.push_back(&op);
    BackwardPhase phase;
    OpBuilder b(end);
    b.setListener(&phase);
    FailureOr<Value> seed = gradientOfLoss(b, model, loss);
    if (failed(seed))
      return failure();
    pass.gradients[loss] = {*seed};
    if (failed(pass.run(b, forward)))
      return failure();
    products += pass.products;

    SmallVector<Attribute> names(end.getOutputNames().begin(), end.getOutputNames().end()),
        parameters;
    SmallVector<Value> values(end.getOutputs());
    for (ParamOp param : model.getBody().getOps<ParamOp>()) {
      if (!isTrained(param))
        continue;
      Value gradient = BackwardPass::sum(b, pass.parameterGradients.lookup(param.getSymNameAttr()));
      if (!gradient)
        gradient = build::constant(b, param.getLoc(), param.getBoundType(), 0.0);
      tagGradient(gradient);
      names.push_back(b.getStringAttr(ReturnOp::gradientName(param.getSymName())));
      parameters.push_back(FlatSymbolRefAttr::get(param));
      values.push_back(gradient);
    }
    values.append(end.getUpdates().begin(), end.getUpdates().end());
    end.getValuesMutable().assign(values);
    end.setOutputNamesAttr(b.getArrayAttr(names));
    if (!parameters.empty())
      end.setGradientsAttr(b.getArrayAttr(parameters));
    entry.setStage(ProgramStage::grad);
    eraseDead(body);
    return success();
  }

  /// 1, or the factor that keeps small gradients in the range of their format.
  FailureOr<Value> gradientOfLoss(OpBuilder &b, ModelOp model, Value loss) {
    if (!lossScale)
      return build::constant(b, loss.getLoc(), loss.getType(), 1.0);
    constexpr double first = 65536.0; // the first steps halve it where it is too large
    FailureOr<StateOp> scale =
        lossScaling(model, "loss_scale", loss.getLoc(), loss.getType(), first);
    if (failed(scale))
      return failure();
    return UseOp::create(b, loss.getLoc(), loss.getType(), scale->getSymName()).getResult();
  }

  LoopDerivatives loops;
};

} // namespace
} // namespace hydra
