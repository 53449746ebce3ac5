// hydra-optimizer: adds guarded updates of all parameters to differentiated programs.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/LossLimit.h"
#include "dialects/hydra/NormSpike.h"
#include "dialects/hydra/OutputNames.h"
#include "passes/Passes.h"
#include "passes/differentiate/GradientNorms.h"
#include "passes/differentiate/LabelCounts.h"
#include "passes/differentiate/LossScaling.h"
#include "passes/differentiate/ProgramOutputs.h"
#include "passes/differentiate/UpdateGuard.h"
#include "passes/differentiate/WeightAverage.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace hydra {

#define GEN_PASS_DEF_OPTIMIZER
#include "passes/Passes.h.inc"

namespace {

/// Where what updates parameters comes from, for reports.
Location ofUpdate(Location loc, Phase phase = Phase::optimizer) {
  return withCategory(withPhase(madeBy("hydra-optimizer", loc), phase), Category::workspace);
}

/// The state that counts updates.
constexpr StringLiteral kUpdateCount = "step";
/// What the losses of a step over micro-batches add up to. Where there is no limit, and no ranks
/// that tell it, they only have to be finite: 0 then, or infinity behind one that is not.
constexpr StringLiteral kLossSum = "loss.sum";

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
      if (failed(checkEntry(entry)) || failed(accum == 1 ? train(entry) : accumulate(entry)))
        return signalPassFailure();
    if (accum > 1 && failed(apply(entries->front())))
      return signalPassFailure();
  }

private:
  LogicalResult checkOptions() {
    if (accum < 1)
      return model.emitOpError() << "accum is " << accum.getValue() << "; expected at least 1";
    if ((normSpike || groupNorms) && !clip && !lossScaleOf(model)) // a scaled loss has the norm
      return model.emitOpError() << (normSpike ? "norm-spike" : "group-norms")
                                 << " needs the norm of gradients; expected clip";
    return success();
  }

  LogicalResult checkEntry(EntryOp entry) {
    if (entry.getStage() != ProgramStage::grad)
      return entry.emitOpError() << "@" << entry.getSymName()
                                 << " is not differentiated; run hydra-differentiate first";
    if (trainedParams().empty())
      return entry.emitOpError() << "@" << entry.getSymName() << " has no parameters to update";
    SmallVector<StringRef> added = {"lr", kUpdateCount, "clip"};
    if (normSpike)
      added.push_back(kNormSpike);
    if (holds)
      added.push_back("hold");
    if (batchFilter)
      added.push_back(kLossLimit);
    for (StringRef name : entry.getArgNames().getAsValueRange<StringAttr>())
      if (llvm::is_contained(added, name))
        return entry.emitOpError() << "has an argument '" << name << "', which the optimizer adds";
    for (StringRef name : added) // the number of updates is a state of the same name
      if (Operation *variable = model.lookupSymbol(name);
          isa_and_nonnull<ParamOp, StateOp>(variable) && name != kUpdateCount &&
          (clip || name != "clip"))
        return variable->emitOpError()
               << "@" << name << " has the name of a number that steps take; expected another";
    if (Operation *variable = model.lookupSymbol("losses");
        isa_and_nonnull<ParamOp, StateOp>(variable))
      return variable->emitOpError()
             << "@losses has the name of what training writes beside variables; expected another";
    for (StringRef name : entry.getReturn().getOutputNames().getAsValueRange<StringAttr>())
      if (name == kGradNormOutput || name == kAppliedOutput ||
          (sumLosses && accum > 1 && name == kLossSumOutput))
        return entry.getReturn().emitOpError()
               << "has an output '" << name << "', which the optimizer adds";
    for (auto symbol : entry.getReturn().getUpdated().getAsRange<FlatSymbolRefAttr>())
      if (llvm::any_of(trainedParams(),
                       [&](ParamOp p) { return p.getSymNameAttr() == symbol.getAttr(); }))
        return entry.getReturn().emitOpError()
               << "updates " << symbol
               << ", which the optimizer updates; expected hydra.state, or a "
               << "parameter that --freeze names";
    return success();
  }

  //===-- Variables -------------------------------------------------------------------------===//

  /// The state of that name, created behind all other variables if new.
  FailureOr<StateOp> state(Twine name, RankedTensorType type, Location loc, InitAttr init,
                           VariableRole role, StringAttr owner = {}) {
    std::string text = name.str();
    if (Operation *existing = model.lookupSymbol(text)) {
      auto found = dyn_cast<StateOp>(existing);
      if (found && found.getBoundType() == type && found.getRole() == role)
        return found;
      InFlightDiagnostic error = existing->emitOpError();
      error << "@" << text << " has the name of optimizer state; expected ";
      if (found && found.getBoundType() == type)
        return error << "another";
      return error << "hydra.state of " << type;
    }
    OpBuilder b(*model.getBody().getOps<EntryOp>().begin());
    return StateOp::create(b, loc, b.getStringAttr(text), b.getI64ArrayAttr(type.getShape()),
                           TypeAttr::get(type.getElementType()), init, StringAttr(), Attribute(),
                           owner, VariableRoleAttr::get(&getContext(), role));
  }
  InitAttr zeros() { return InitAttr::get(&getContext(), InitKind::zeros, {}); }
  FailureOr<StateOp> sumOverStep(Twine name, Location loc) {
    return state(name, RankedTensorType::get({}, Float32Type::get(&getContext())), loc, zeros(),
                 VariableRole::step_sum);
  }

  SmallVector<ParamOp> trainedParams() {
    return llvm::to_vector(llvm::make_filter_range(
        model.getBody().getOps<ParamOp>(), [](ParamOp param) { return !param.getFrozen(); }));
  }

  static RankedTensorType typeOf(Operation *variable) {
    auto param = dyn_cast<ParamOp>(variable);
    return param ? param.getBoundType() : cast<StateOp>(variable).getBoundType();
  }
  static Value read(OpBuilder &b, Operation *variable) {
    return UseOp::create(b, variable->getLoc(), typeOf(variable),
                         SymbolTable::getSymbolName(variable));
  }

  FailureOr<GroupOp> groupOf(ParamOp param) {
    StringRef name = param.getGroup().value_or("default");
    for (GroupOp group : model.getBody().getOps<GroupOp>())
      if (group.getGroup() == name)
        return group;
    return param.emitOpError() << "@" << param.getSymName() << " belongs to the optimizer group @"
                               << name << ", which the model does not declare";
  }

  //===-- A step ----------------------------------------------------------------------------===//

  /// The gradient of a unit, of which every rank updates its rows; that of another parameter
  /// itself.
  static Value ofRank(OpBuilder &b, ParamOp param, Value gradient) {
    if (std::optional<FlatUnitAttr> unit = param.getUnit())
      for (StringRef axis : MeshAttr::axesOf(unit->getOver()))
        gradient = ShardOp::create(b, gradient.getLoc(), gradient, b.getStringAttr(axis));
    return gradient;
  }

  /// Where the gradient of a unit is that of one member, it stands beside zeros, as several do:
  /// then it can be made where the unit wants it.
  static Value filledUp(Value gradient) {
    auto reshape = gradient.getDefiningOp<ReshapeOp>();
    auto pad = reshape ? reshape.getX().getDefiningOp<PadOp>() : PadOp();
    if (!pad)
      return gradient;
    OpBuilder b(pad);
    SmallVector<Value> parts{pad.getX()};
    auto zeros = [&](int64_t count) {
      const auto type = RankedTensorType::get({count}, build::typeOf(pad.getX()).getElementType());
      return build::constant(b, pad.getLoc(), type, 0.0);
    };
    if (pad.getBefore() > 0)
      parts.insert(parts.begin(), zeros(pad.getBefore()));
    if (pad.getAfter() > 0)
      parts.push_back(zeros(pad.getAfter()));
    pad.getY().replaceAllUsesWith(ConcatOp::create(b, pad.getLoc(), parts, pad.getAxisAttr()));
    pad.erase();
    return gradient;
  }
  static Value finalGradient(ReturnOp end, ParamOp param) {
    Value gradient = end.getGradient(param.getSymNameAttr());
    return param.getUnit() ? filledUp(gradient) : gradient;
  }

  /// What all updates of a step share.
  struct Step {
    Value rate;        ///< the learning rate
    Value scale;       ///< of gradients; null: none
    Value ok;          ///< whether updates are applied
    Value finite;      ///< the same but for the limit of the loss
    Value hold;        ///< an input that holds everything where it is not finite; null: none
    StateOp lossScale; ///< what the loss is multiplied by; null: nothing
    Value factor;      ///< its value
    Value count;       ///< of updates, this one included, once something asked for it
    Value share;       ///< of new values in averages; null: there are no averages
  };

  /// Adds the numbers of a step, and outputs that show them. `loss` guards, or the sum of those of
  /// all micro-batches, and the norm where one is computed.
  Step numbersOf(OpBuilder &b, Location loc, EntryOp entry, const Gradients &gradients, Value rate,
                 Value loss, ProgramOutputs &outputs) {
    const auto scalar = RankedTensorType::get({}, b.getF32Type());
    const auto give = [&](const Twine &name, Value value) { outputs.give(b, name.str(), value); };
    Step step;
    step.rate = rate;
    step.lossScale = lossScaleOf(model);
    if (holds)
      step.hold = entry.addArgument("hold", scalar, loc, b.getF64FloatAttr(0.0));
    Value applied, limit;
    if (batchFilter)
      limit = entry.addArgument(kLossLimit, scalar, loc, b.getF64FloatAttr(0.0));
    auto runs = [&](Value number) {
      if (step.hold)
        number = AddOp::create(b, loc, number, step.hold);
      return isFinite(b, loc, number);
    };
    auto guardBy = [&](Value number) {
      Value within = number;
      if (limit) {
        Value mean = accum == 1 ? loss : build::scale(b, loc, loss, 1.0 / accum);
        within = withinLimit(b, loc, mean, limit, number);
      }
      step.ok = runs(within);
      step.finite = limit && step.lossScale ? runs(number) : step.ok;
      applied = build::cast(b, loc, step.ok, b.getF32Type());
    };
    if (step.lossScale) {
      step.factor = read(b, step.lossScale);
      step.scale = DivOp::create(b, loc, build::constant(b, loc, scalar, 1.0), step.factor);
    }
    const Value inverse = step.scale;
    if (gradHistograms) // without a norm no gradient waits for the others
      giveGradHistograms(b, loc, gradients, inverse, /*apart=*/!clip && !step.lossScale, give);
    if (clip || step.lossScale) {
      const Location clipped = withPhase(loc, Phase::clip);
      Value norm = gradientNorm(b, clipped, gradients, inverse, groupNorms, give);
      if (clip) {
        Value limit = entry.addArgument("clip", scalar, loc, b.getF64FloatAttr(0.0));
        Value clipping = clipScale(b, clipped, norm, limit);
        step.scale = inverse ? MulOp::create(b, clipped, clipping, inverse) : clipping;
      }
      if (normSpike) {
        Value bound = entry.addArgument(kNormSpike, scalar, loc, b.getF64FloatAttr(0.0));
        step.rate = slowed(b, clipped, rate, norm, bound);
      }
      give(kGradNormOutput, norm);
      guardBy(whereFinite(b, clipped, loss, norm));
    } else {
      // Known before the backward pass, so that updates can stand right behind their gradients.
      OpBuilder::InsertionGuard here(b);
      b.setInsertionPointAfterValue(loss);
      guardBy(loss);
    }
    give(kAppliedOutput, applied);
    return step;
  }

  /// The number of updates, this one included.
  Value updateCount(OpBuilder &b, Location loc, Step &step) {
    if (!step.count)
      step.count = UseOp::create(b, loc, RankedTensorType::get({}, b.getI32Type()), kUpdateCount);
    return step.count;
  }

  /// The update of a parameter, of what its optimizer keeps for it, and of its average.
  LogicalResult updateParameter(OpBuilder &b, Location loc, ParamOp param, Value gradient,
                                Step &step, ProgramOutputs &outputs) {
    FailureOr<GroupOp> group = groupOf(param);
    if (failed(group))
      return failure();
    Location at = ofUpdate(param.getLoc());
    const auto *optimizer = GroupOp::lookupOptimizer(&getContext(), group->getOptimizer());
    DictionaryAttr settings = group->getSettings();
    if (std::string problem = optimizer->checkParameter(param.getBoundType()); !problem.empty())
      return param.emitOpError() << "@" << param.getSymName() << " is " << param.getBoundType()
                                 << "; " << problem << ": give it a group with another optimizer";
    SmallVector<Operation *> variables{param};
    for (const OptimizerState &own : optimizer->states(param.getBoundType(), settings)) {
      FailureOr<StateOp> kept = state(param.getSymName() + "." + own.name, own.type, at,
                                      InitAttr::get(&getContext(), own.init, {}),
                                      VariableRole::moment, param.getSymNameAttr());
      if (failed(kept))
        return failure();
      variables.push_back(*kept);
    }
    SmallVector<Value> old =
        llvm::map_to_vector(variables, [&](Operation *variable) { return read(b, variable); });
    SmallVector<Value> fresh =
        optimizer->buildUpdate(b, at,
                               {.parameter = old.front(),
                                .gradient = gradient,
                                .states = SmallVector<Value>(llvm::drop_begin(old)),
                                .rate = step.rate,
                                .updateCount = [&] { return updateCount(b, loc, step); },
                                .scale = step.scale,
                                .settings = settings});
    for (auto [variable, before, after] : llvm::zip_equal(variables, old, fresh))
      outputs.set(variable, guardedAsMade(b, at, step.ok, after, before,
                                          [](Value made, Value) { return made; }));
    if (!step.share)
      return success();
    FailureOr<StateOp> average =
        state(param.getSymName() + ".average",
              RankedTensorType::get(param.getBoundType().getShape(), b.getF32Type()), at, zeros(),
              VariableRole::average, param.getSymNameAttr());
    if (failed(average))
      return failure();
    auto moved = [&](Value made, Value before) {
      return movedAverage(b, at, before, made, step.share);
    };
    outputs.set(*average, guardedAsMade(b, at, step.ok, fresh.front(), read(b, *average), moved));
    return success();
  }

  /// Adds the numbers of the step, the updates of all parameters, and one guard for them and for
  /// all that is updated already: by the loss, or the sum of those of all micro-batches, and by the
  /// norm where one is computed.
  LogicalResult update(OpBuilder &b, EntryOp entry, ProgramOutputs &outputs, Value loss,
                       llvm::function_ref<Value(ParamOp)> gradientOf) {
    Location loc = ofUpdate(entry.getLoc());
    const auto scalar = RankedTensorType::get({}, b.getF32Type());
    Value rate = entry.addArgument("lr", scalar, loc, b.getF64FloatAttr(1e-3));
    Gradients gradients;
    gradients.params = trainedParams();
    gradients.values = llvm::map_to_vector(gradients.params, gradientOf);
    Step step = numbersOf(b, loc, entry, gradients, rate, loss, outputs);
    for (auto [symbol, value] : llvm::zip(outputs.updated, outputs.updates)) {
      Operation *variable = model.lookupSymbol(cast<FlatSymbolRefAttr>(symbol));
      value = GuardOp::create(b, ofUpdate(value.getLoc()), step.ok, value, read(b, variable));
    }
    if (emaDecay > 0 || swaFrom > 0)
      step.share = shareInAverage(b, loc, updateCount(b, loc, step), emaDecay, swaFrom);
    for (auto [param, gradient] : llvm::zip(gradients.params, gradients.values)) {
      if (failed(updateParameter(b, loc, param, gradient, step, outputs)))
        return failure();
      ++updates;
    }
    if (step.count && failed(countUpdate(b, loc, step.count, step.ok, outputs)))
      return failure();
    return step.lossScale ? adapt(b, loc, step, outputs) : success();
  }

  /// What scales the loss changes with every step, finite or not, unless the step is held.
  LogicalResult adapt(OpBuilder &b, Location loc, const Step &step, ProgramOutputs &outputs) {
    auto i32 = RankedTensorType::get({}, b.getI32Type());
    FailureOr<StateOp> age = lossScaling(model, "loss_scale.age", loc, i32, 0.0);
    if (failed(age))
      return failure();
    const Value before = read(b, *age);
    LossScaleUpdate next = updateLossScale(b, loc, step.factor, before, step.finite);
    if (step.hold) {
      Value runs = isFinite(b, loc, step.hold);
      next = {GuardOp::create(b, loc, runs, next.scale, step.factor),
              GuardOp::create(b, loc, runs, next.age, before)};
    }
    outputs.set(step.lossScale, next.scale);
    outputs.set(*age, next.age);
    return success();
  }

  /// Only updates that are applied count.
  LogicalResult countUpdate(OpBuilder &b, Location loc, Value count, Value ok,
                            ProgramOutputs &outputs) {
    FailureOr<StateOp> counter = state(kUpdateCount, build::typeOf(count), loc,
                                       InitAttr::get(&getContext(), InitKind::constant,
                                                     {Builder(&getContext()).getI64IntegerAttr(1)}),
                                       VariableRole::update_count);
    if (failed(counter))
      return failure();
    Value next = AddOp::create(b, loc, count, build::constant(b, loc, count.getType(), 1.0));
    outputs.set(*counter, GuardOp::create(b, loc, ok, next, count));
    return success();
  }

  LogicalResult train(EntryOp entry) {
    if (StateOp lossScale = lossScaleOf(model))
      scaleSavedGradients(entry, lossScale);
    ReturnOp end = entry.getReturn();
    OpBuilder b(end);
    ProgramOutputs outputs = ProgramOutputs::of(end);
    auto gradientOf = [&](ParamOp param) { return ofRank(b, param, finalGradient(end, param)); };
    if (failed(update(b, entry, outputs, end.getOutput(kLossOutput), gradientOf)))
      return failure();
    entry.setStage(ProgramStage::train);
    outputs.returnFrom(end);
    return success();
  }

  //===-- A step over micro-batches ---------------------------------------------------------===//

  /// The program of one micro-batch: adds its gradients to state, and keeps what the model updates
  /// apart until the update is applied.
  LogicalResult accumulate(EntryOp entry) {
    ReturnOp end = entry.getReturn();
    FailureOr<SmallVector<StateOp>> counts = divideByLabelsOfStep(
        entry, nameIn(entry, "count"), accum,
        [&](const Twine &name, Location loc) { return sumOverStep(name, loc); });
    if (failed(counts))
      return failure();
    stepSums.insert_range(*counts);
    if (StateOp lossScale = lossScaleOf(model))
      scaleSavedGradients(entry, lossScale);
    OpBuilder b(end);
    ProgramOutputs outputs = ProgramOutputs::of(end);
    for (auto [symbol, value] : llvm::zip(outputs.updated, outputs.updates)) {
      FailureOr<StateOp> next = pendingOf(cast<FlatSymbolRefAttr>(symbol).getAttr());
      if (failed(next))
        return failure();
      entry.walk([&](UseOp use) {
        if (use.getVariableAttr() == symbol)
          use.setVariable(next->getSymName());
      });
      symbol = FlatSymbolRefAttr::get(*next);
    }
    for (ParamOp param : trainedParams()) {
      Location at = withCategory(ofUpdate(param.getLoc(), Phase::backward), Category::grad);
      Value gradient = finalGradient(end, param);
      auto type = RankedTensorType::get(param.getBoundType().getShape(), b.getF32Type());
      FailureOr<StateOp> sum =
          state(param.getSymName() + ".grad", type, at, zeros(),
                exchangeLast ? VariableRole::gradient_part : VariableRole::gradient,
                param.getSymNameAttr());
      if (failed(sum))
        return failure();
      Value share = build::scale(b, at, build::cast(b, at, gradient, b.getF32Type()), 1.0 / accum);
      Value added = exchangeLast ? share : ofRank(b, param, share);
      outputs.set(*sum, AddOp::create(b, at, read(b, *sum), added));
      sums[param] = *sum;
    }
    Location loc = ofUpdate(entry.getLoc(), Phase::loss);
    FailureOr<StateOp> sum = sumOverStep(kLossSum, loc);
    if (failed(sum))
      return failure();
    Value loss = end.getOutput(kLossOutput), before = read(b, *sum);
    // A limit is compared with the mean, in the order of micro-batches on one rank, and so is what
    // ranks tell. Else the guard asks only whether all losses were finite.
    Value after = batchFilter || sumLosses ? Value(AddOp::create(b, loc, before, loss))
                                           : whereFinite(b, loc, loss, before);
    outputs.set(*sum, after);
    if (sumLosses)
      outputs.give(b, kLossSumOutput, after);
    stepSums.insert(*sum);
    outputs.returnFrom(end);
    const std::string name = nameIn(entry, "accumulate");
    if (failed(checkProgramName(model, name)))
      return failure();
    entry.setSymName(name);
    entry.setStage(ProgramStage::accumulate);
    return success();
  }

  /// What a program of a step is called: the phases of a run differ behind a point.
  static std::string nameIn(EntryOp entry, StringRef what) {
    StringRef phase = entry.getSymName().split('.').second;
    return phase.empty() ? what.str() : (what + "." + phase).str();
  }

  /// The copy of a variable that the micro-batches of a step update.
  FailureOr<StateOp> pendingOf(StringAttr name) {
    Operation *variable = model.lookupSymbol(name);
    auto init = variable->getAttrOfType<InitAttr>("init");
    FailureOr<StateOp> next = state(name.getValue() + ".next", typeOf(variable), variable->getLoc(),
                                    init, VariableRole::copy, name);
    if (succeeded(next))
      pending[variable] = *next;
    return next;
  }

  /// The program that uses and clears what the micro-batches have left.
  LogicalResult apply(EntryOp first) {
    if (failed(checkProgramName(model, "apply")))
      return failure();
    OpBuilder b(&getContext());
    b.setInsertionPointAfter(first);
    auto none = b.getArrayAttr({});
    auto entry =
        EntryOp::create(b, first.getLoc(), b.getStringAttr("apply"), none, none, none, none, none,
                        ProgramStageAttr::get(b.getContext(), ProgramStage::apply),
                        ProgramRoleAttr(), b.getDenseI64ArrayAttr({}), ScanAttr(), RowsAttr());
    b.setInsertionPointToEnd(&entry.getBody().emplaceBlock());
    auto end =
        ReturnOp::create(b, first.getLoc(), ValueRange(), none, none, ArrayAttr(), ArrayAttr());
    b.setInsertionPoint(end);
    ProgramOutputs outputs, cleared;
    Value loss;
    auto clear = [&](StateOp sum) {
      cleared.set(sum, build::constant(b, sum.getLoc(), sum.getBoundType(), 0.0));
      return read(b, sum);
    };
    DenseMap<Operation *, Value> gradients;
    for (ParamOp param : trainedParams()) {
      Value sum = clear(sums[param]);
      if (exchangeLast) { // here ranks meet
        sum.setLoc(withPhase(sum.getLoc(), Phase::optimizer));
        sum = ofRank(b, param, sum);
      }
      gradients[param] = sum;
    }
    for (StateOp sum : stepSums) {
      Value value = clear(sum);
      if (sum.getSymName() == kLossSum)
        loss = value;
    }
    for (auto [variable, next] : pending)
      outputs.set(variable, read(b, next));
    if (failed(update(b, entry, outputs, loss, [&](ParamOp param) { return gradients[param]; })))
      return failure();
    // What was refused is forgotten.
    for (auto [i, next] : llvm::enumerate(llvm::make_second_range(pending)))
      outputs.set(next, outputs.updates[i]);
    llvm::append_range(cleared.updated, outputs.updated);
    llvm::append_range(cleared.updates, outputs.updates);
    cleared.names = outputs.names;
    cleared.values = outputs.values;
    cleared.returnFrom(end);
    return success();
  }

  ModelOp model;
  DenseMap<Operation *, StateOp> sums;           ///< of gradients, by parameter
  llvm::MapVector<Operation *, StateOp> pending; ///< by the variable that it may become
  llvm::SetVector<StateOp> stepSums;             ///< that a step clears at its end
};

} // namespace
} // namespace hydra
