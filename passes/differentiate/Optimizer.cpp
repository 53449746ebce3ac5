// hydra-optimizer: adds AdamW updates to differentiated programs.
#include "dialects/hydra/Build.h"
#include "passes/Passes.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_OPTIMIZER
#include "passes/Passes.h.inc"

namespace {

struct Optimizer : impl::OptimizerBase<Optimizer> {
  using OptimizerBase::OptimizerBase;

  void runOnOperation() override {
    model = findBoundModel(getOperation());
    if (!model)
      return signalPassFailure();
    FailureOr<SmallVector<EntryOp>> entries =
        findPrograms(model, SmallVector<std::string>(programs.begin(), programs.end()));
    if (failed(entries) || failed(checkOptions()))
      return signalPassFailure();
    for (EntryOp entry : *entries)
      if (failed(extend(entry)))
        return signalPassFailure();
  }

private:
  LogicalResult checkOptions() {
    if (accum >= 1)
      return success();
    return model.emitOpError() << "accum is " << accum.getValue() << "; expected at least 1";
  }

  LogicalResult extend(EntryOp entry) {
    if (!entry.getStage() || *entry.getStage() != "grad")
      return entry.emitOpError() << "@" << entry.getSymName()
                                 << " is not differentiated; run hydra-differentiate first";
    if (model.getBody().getOps<ParamOp>().empty())
      return entry.emitOpError() << "@" << entry.getSymName() << " has no parameters to update";
    if (accum == 1) {
      ReturnOp end = entry.getReturn();
      OpBuilder b(end);
      Outputs outputs = takeOutputs(end);
      entry.setStage("train");
      return update(b, entry, outputs, [&](ParamOp param) {
        return end.getOutput(("grad." + param.getSymName()).str());
      });
    }
    return splitAccumulation(entry);
  }

  struct Outputs {
    SmallVector<Attribute> names, updated;
    SmallVector<Value> values, updates;
    void give(OpBuilder &b, StringRef name, Value value) {
      names.push_back(b.getStringAttr(name));
      values.push_back(value);
    }
    void set(Operation *variable, Value value) {
      updated.push_back(FlatSymbolRefAttr::get(SymbolTable::getSymbolName(variable)));
      updates.push_back(value);
    }
  };

  /// What the program returns besides gradients.
  Outputs takeOutputs(ReturnOp end) {
    Outputs outputs;
    for (auto [name, value] : llvm::zip(end.getOutputNames(), end.getOutputs()))
      if (!cast<StringAttr>(name).getValue().starts_with("grad.")) {
        outputs.names.push_back(name);
        outputs.values.push_back(value);
      }
    llvm::append_range(outputs.updated, end.getUpdated());
    llvm::append_range(outputs.updates, end.getUpdates());
    return outputs;
  }

  static void setReturn(OpBuilder &b, ReturnOp end, Outputs &outputs) {
    SmallVector<Value> values = outputs.values;
    llvm::append_range(values, outputs.updates);
    end.getValuesMutable().assign(values);
    end.setOutputNamesAttr(b.getArrayAttr(outputs.names));
    end.setUpdatedAttr(b.getArrayAttr(outputs.updated));
  }

  /// The state of that name, created with zeros behind all other variables if new.
  FailureOr<StateOp> state(Twine name, RankedTensorType type, Location loc) {
    std::string text = name.str();
    if (Operation *existing = model.lookupSymbol(text)) {
      auto found = dyn_cast<StateOp>(existing);
      if (found && found.getBoundType() == type)
        return found;
      return existing->emitOpError() << "@" << text << " has the name of optimizer state; expected "
                                     << "hydra.state of " << type;
    }
    OpBuilder b(*model.getBody().getOps<EntryOp>().begin());
    auto init = InitAttr::get(&getContext(), "zeros", {});
    return StateOp::create(b, loc, b.getStringAttr(text), b.getI64ArrayAttr(type.getShape()),
                           TypeAttr::get(type.getElementType()), init, StringAttr(), Attribute(),
                           StringAttr());
  }

  Value read(OpBuilder &b, Operation *variable, RankedTensorType type) {
    return UseOp::create(b, variable->getLoc(), type, SymbolTable::getSymbolName(variable));
  }

  FailureOr<GroupOp> groupOf(ParamOp param) {
    StringRef name = param.getGroup().value_or("default");
    for (GroupOp group : model.getBody().getOps<GroupOp>())
      if (group.getGroup() == name)
        return group;
    return param.emitOpError() << "@" << param.getSymName() << " belongs to the optimizer group @"
                               << name << ", which the model does not declare";
  }

  /// min(1, clip / (norm + 1e-6)), or 1 when clip is not positive: models.md section 1.3.
  Value clipScale(OpBuilder &b, Location loc, Value norm, Value clip) {
    Type type = norm.getType();
    Value one = build::constant(b, loc, type, 1.0);
    Value guarded = AddOp::create(b, loc, norm, build::constant(b, loc, type, 1e-6));
    Value ratio = MinOp::create(b, loc, one, DivOp::create(b, loc, clip, guarded));
    Value wanted =
        CompareOp::create(b, loc, clip, build::constant(b, loc, type, 0.0), b.getStringAttr("gt"));
    return SelectOp::create(b, loc, wanted, ratio, one);
  }

  /// Adds the scalars and the updates of all parameters, and sets the return.
  LogicalResult update(OpBuilder &b, EntryOp entry, Outputs outputs,
                       llvm::function_ref<Value(ParamOp)> gradientOf) {
    Location loc = withPhase(entry.getLoc(), Phase::optimizer);
    for (StringRef name : entry.getArgNames().getAsValueRange<StringAttr>())
      if (name == "lr" || name == "step" || name == "clip")
        return entry.emitOpError() << "has an argument '" << name << "', which the optimizer adds";
    auto scalar = RankedTensorType::get({}, b.getF32Type());
    Value lr = entry.addArgument("lr", scalar, loc, b.getF64FloatAttr(1e-3));
    Value step = entry.addArgument("step", RankedTensorType::get({}, b.getI32Type()), loc,
                                   b.getI64IntegerAttr(1));
    SmallVector<ParamOp> params(model.getBody().getOps<ParamOp>());
    SmallVector<Value> gradients = llvm::map_to_vector(params, gradientOf);
    Value scale;
    if (clip) {
      Value limit = entry.addArgument("clip", scalar, loc, b.getF64FloatAttr(0.0));
      Value norm = GlobalNormOp::create(b, loc, gradients);
      scale = clipScale(b, loc, norm, limit);
      outputs.give(b, "grad_norm", norm);
    }
    for (auto [param, gradient] : llvm::zip(params, gradients)) {
      FailureOr<GroupOp> group = groupOf(param);
      if (failed(group))
        return failure();
      Location at = withPhase(param.getLoc(), Phase::optimizer);
      RankedTensorType type = param.getBoundType();
      auto moment = RankedTensorType::get(type.getShape(), b.getF32Type());
      FailureOr<StateOp> m = state(param.getSymName() + ".m", moment, at);
      FailureOr<StateOp> v = state(param.getSymName() + ".v", moment, at);
      if (failed(m) || failed(v))
        return failure();
      auto step1 =
          AdamWOp::create(b, at, read(b, param, type), read(b, *m, moment), read(b, *v, moment),
                          gradient, lr, step, scale, group->getBeta1Attr(), group->getBeta2Attr(),
                          group->getEpsAttr(), group->getWdAttr(), group->getLrScaleAttr());
      outputs.set(param, step1.getP1());
      outputs.set(*m, step1.getM1());
      outputs.set(*v, step1.getV1());
      ++updates;
    }
    setReturn(b, entry.getReturn(), outputs);
    return success();
  }

  /// `accumulate` adds to gradient state, `apply` uses and clears it.
  LogicalResult splitAccumulation(EntryOp entry) {
    ReturnOp end = entry.getReturn();
    OpBuilder b(end);
    Outputs outputs = takeOutputs(end);
    for (ParamOp param : model.getBody().getOps<ParamOp>()) {
      Location at = withPhase(param.getLoc(), Phase::optimizer);
      Value gradient = end.getOutput(("grad." + param.getSymName()).str());
      RankedTensorType type =
          RankedTensorType::get(param.getBoundType().getShape(), b.getF32Type());
      FailureOr<StateOp> sum = state(param.getSymName() + ".grad", type, at);
      if (failed(sum))
        return failure();
      Value share = build::scale(b, at, build::cast(b, at, gradient, b.getF32Type()), 1.0 / accum);
      outputs.set(*sum, AddOp::create(b, at, read(b, *sum, type), share));
    }
    setReturn(b, end, outputs);
    // Phases have a name behind a point.
    auto [stem, phase] = entry.getSymName().split('.');
    entry.setSymName(phase.empty() ? "accumulate" : ("accumulate." + phase).str());
    entry.setStage("accumulate");
    if (auto existing = model.lookupSymbol<EntryOp>("apply")) {
      if (existing.getStage() == "apply")
        return success();
      return existing.emitOpError("has the name of the program that applies accumulated gradients");
    }

    b.setInsertionPointAfter(entry);
    auto none = b.getArrayAttr({});
    auto apply =
        EntryOp::create(b, entry.getLoc(), b.getStringAttr("apply"), none, none, none, none, none,
                        b.getStringAttr("apply"), b.getDenseI64ArrayAttr({}), WalkAttr());
    b.setInsertionPointToEnd(&apply.getBody().emplaceBlock());
    auto applyEnd = ReturnOp::create(b, entry.getLoc(), ValueRange(), none, none);
    b.setInsertionPoint(applyEnd);
    Outputs cleared;
    DenseMap<Operation *, Value> sums;
    for (ParamOp param : model.getBody().getOps<ParamOp>()) {
      auto sum = model.lookupSymbol<StateOp>((param.getSymName() + ".grad").str());
      sums[param] = read(b, sum, sum.getBoundType());
      cleared.set(sum, build::constant(b, sum.getLoc(), sum.getBoundType(), 0.0));
    }
    return update(b, apply, cleared, [&](ParamOp param) { return sums[param]; });
  }

  ModelOp model;
};

} // namespace
} // namespace hydra
