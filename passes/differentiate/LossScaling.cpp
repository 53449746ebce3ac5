// The state that multiplies the loss, so that small gradients are not lost in a narrow format.
#include "passes/differentiate/LossScaling.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/RowLoss.h"

using namespace mlir;

namespace hydra {

FailureOr<StateOp> lossScaling(ModelOp model, StringRef name, Location loc, Type type,
                               double initial) {
  auto tensor = cast<RankedTensorType>(type);
  if (Operation *existing = model.lookupSymbol(name)) {
    auto found = dyn_cast<StateOp>(existing);
    if (found && found.getRole() == VariableRole::loss_scaling)
      return found;
    return existing->emitOpError()
           << "@" << name << " has the name of the state that scales the loss";
  }
  OpBuilder b(*model.getBody().getOps<EntryOp>().begin());
  auto init = InitAttr::get(b.getContext(), InitKind::constant, {b.getF64FloatAttr(initial)});
  return StateOp::create(b, loc, b.getStringAttr(name), b.getI64ArrayAttr(tensor.getShape()),
                         TypeAttr::get(tensor.getElementType()), init, StringAttr(), Attribute(),
                         StringAttr(),
                         VariableRoleAttr::get(b.getContext(), VariableRole::loss_scaling));
}

StateOp lossScaleOf(ModelOp model) {
  for (StateOp state : model.getBody().getOps<StateOp>())
    if (state.getRole() == VariableRole::loss_scaling && isa<FloatType>(state.getDtype()))
      return state;
  return {};
}

void scaleSavedGradients(EntryOp entry, StateOp scale) {
  entry.walk([&](LinearCrossEntropyOp loss) {
    if (!loss.getSaving())
      return;
    Location loc = madeBy("hydra-optimizer", loss.getLoc());
    OpBuilder b(loss);
    auto scalar = RankedTensorType::get({}, b.getF32Type());
    Value factor = UseOp::create(b, loc, scalar, scale.getSymName());
    Value one = build::constant(b, loc, scalar, 1.0);
    Value count = loss.getCount();
    if (!count) {
      const int64_t rows = build::typeOf(loss.getLabels()).getNumElements();
      Value labels = build::reshape(b, loc, loss.getLabels(), {rows});
      count = MaxOp::create(b, loc, RowLoss::countOf(b, loc, labels), one);
    }
    loss.divideBy(DivOp::create(b, loc, count, factor));
    b.setInsertionPointAfter(loss);
    Value inverse = DivOp::create(b, loc, one, factor);
    auto divided = [&](Value v, Location at) {
      Value wide = build::broadcast(
          b, at, build::cast(b, at, inverse, build::typeOf(v).getElementType()), build::shapeOf(v));
      Value result = MulOp::create(b, at, v, wide);
      v.replaceAllUsesExcept(result, result.getDefiningOp());
    };
    divided(loss.getLoss(), loc);
    for (Value saved : loss.getSaved())
      if (!saved.use_empty())
        divided(saved, withCategory(withPhase(loc, Phase::backward), Category::act_grad));
  });
}

LossScaleUpdate updateLossScale(OpBuilder &b, Location loc, Value scale, Value age, Value applied) {
  constexpr double least = 1.0, most = 16777216.0, patience = 2000.0;
  Type type = scale.getType(), whole = age.getType();
  auto number = [&](double value) { return build::constant(b, loc, type, value); };
  Value next = AddOp::create(b, loc, age, build::constant(b, loc, whole, 1.0));
  Value due =
      CompareOp::create(b, loc, next, build::constant(b, loc, whole, patience), Predicate::ge);
  Value none = build::constant(b, loc, whole, 0.0);
  Value doubled = MinOp::create(b, loc, MulOp::create(b, loc, scale, number(2.0)), number(most));
  Value halved = MaxOp::create(b, loc, MulOp::create(b, loc, scale, number(0.5)), number(least));
  auto choose = [&](Value condition, Value yes, Value no) -> Value {
    return SelectOp::create(b, loc, condition, yes, no);
  };
  return {choose(applied, choose(due, doubled, scale), halved),
          choose(applied, choose(due, none, next), none)};
}

} // namespace hydra
