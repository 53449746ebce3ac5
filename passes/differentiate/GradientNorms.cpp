// Norms of gradients and what goes by them.
#include "passes/differentiate/GradientNorms.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/GradHistogram.h"
#include "dialects/hydra/NormSpike.h"
#include "passes/differentiate/GradHistogram.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace hydra {

/// The sum of all squared elements of gradients.
static Value sumOfSquares(OpBuilder &b, Location loc, const Gradients &gradients) {
  SmallVector<Value> whole, cut;
  for (auto [param, gradient] : llvm::zip(gradients.params, gradients.values))
    (ParamOp(param).getUnit() ? cut : whole).push_back(gradient);
  if (cut.empty())
    return GlobalNormOp::sumOfSquares(b, loc, whole);
  Value total = GlobalNormOp::sumOfSquares(b, loc, cut);
  return whole.empty() ? total
                       : AddOp::create(b, loc, GlobalNormOp::sumOfSquares(b, loc, whole), total);
}

/// Those of each optimizer group, by its name.
static llvm::MapVector<StringRef, Gradients> byGroup(const Gradients &gradients) {
  llvm::MapVector<StringRef, Gradients> groups;
  for (auto [param, gradient] : llvm::zip(gradients.params, gradients.values)) {
    Gradients &group = groups[ParamOp(param).getGroup().value_or("default")];
    group.params.push_back(param);
    group.values.push_back(gradient);
  }
  return groups;
}

Value gradientNorm(OpBuilder &b, Location loc, const Gradients &gradients, Value inverse,
                   bool groups, GiveOutput give) {
  auto unscaled = [&](Value norm) -> Value {
    return inverse ? MulOp::create(b, loc, norm, inverse) : norm;
  };
  auto isUnit = [](ParamOp param) { return param.getUnit().has_value(); };
  if (!groups && llvm::none_of(gradients.params, isUnit))
    return unscaled(GlobalNormOp::create(b, loc, gradients.values));
  if (!groups)
    return unscaled(SqrtOp::create(b, loc, sumOfSquares(b, loc, gradients)));
  Value total;
  for (auto &[name, members] : byGroup(gradients)) {
    Value squares = sumOfSquares(b, loc, members);
    give("grad_norm." + name, unscaled(SqrtOp::create(b, loc, squares)));
    total = total ? AddOp::create(b, loc, total, squares).getResult() : squares;
  }
  return unscaled(SqrtOp::create(b, loc, total));
}

void giveGradHistograms(OpBuilder &b, Location loc, const Gradients &gradients, Value inverse,
                        bool apart, GiveOutput give) {
  for (auto &[name, members] : byGroup(gradients)) {
    SmallVector<Value> whole, cut;
    int64_t padding = 0; // what belongs to no member of a unit
    for (auto [param, gradient] : llvm::zip(members.params, members.values)) {
      std::optional<FlatUnitAttr> unit = ParamOp(param).getUnit();
      (unit ? cut : whole).push_back(gradient);
      if (!unit)
        continue;
      padding += ParamOp(param).getBoundType().getNumElements();
      for (MemberAttr member : unit->getMembers())
        padding -= member.elements();
    }
    Value counts;
    if (!whole.empty())
      counts = countExponents(b, loc, whole, inverse, 0, apart);
    if (!cut.empty()) {
      Value these = countExponents(b, loc, cut, inverse, padding, apart);
      counts = counts ? AddOp::create(b, loc, counts, these).getResult() : these;
    }
    give(kGradHistogram + name, counts);
  }
}

Value clipScale(OpBuilder &b, Location loc, Value norm, Value clip) {
  Type type = norm.getType();
  Value one = build::constant(b, loc, type, 1.0);
  Value guarded = AddOp::create(b, loc, norm, build::constant(b, loc, type, 1e-6));
  Value ratio = MinOp::create(b, loc, one, DivOp::create(b, loc, clip, guarded));
  Value wanted = CompareOp::create(b, loc, clip, build::constant(b, loc, type, 0.0), Predicate::gt);
  return SelectOp::create(b, loc, wanted, ratio, one);
}

Value slowed(OpBuilder &b, Location loc, Value rate, Value norm, Value bound) {
  auto above = [&](Value x, Value y) -> Value {
    return CompareOp::create(b, loc, x, y, Predicate::gt);
  };
  Value part = build::scale(b, loc, rate, kNormSpikeRate);
  Value spikes = SelectOp::create(b, loc, above(norm, bound), part, rate);
  Value none = build::constant(b, loc, bound.getType(), 0.0);
  return SelectOp::create(b, loc, above(bound, none), spikes, rate);
}

} // namespace hydra
