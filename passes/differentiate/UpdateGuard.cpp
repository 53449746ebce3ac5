// The numbers that guard a step, and guarded values.
#include "passes/differentiate/UpdateGuard.h"

#include "dialects/hydra/Build.h"

#include <limits>

using namespace mlir;

namespace hydra {

Value isFinite(OpBuilder &b, Location loc, Value x) {
  Value size = MaxOp::create(b, loc, x, NegOp::create(b, loc, x));
  constexpr double most = std::numeric_limits<float>::max();
  return CompareOp::create(b, loc, size, build::constant(b, loc, x.getType(), most), Predicate::le);
}

Value withinLimit(OpBuilder &b, Location loc, Value loss, Value limit, Value number) {
  auto above = [&](Value x, Value y) -> Value {
    return CompareOp::create(b, loc, x, y, Predicate::gt);
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Value none = build::constant(b, loc, limit.getType(), 0.0);
  Value refused = build::constant(b, loc, number.getType(), infinity);
  Value limited = SelectOp::create(b, loc, above(loss, limit), refused, number);
  return SelectOp::create(b, loc, above(limit, none), limited, number);
}

Value whereFinite(OpBuilder &b, Location loc, Value other, Value number) {
  auto constant = [&](double value) { return build::constant(b, loc, other.getType(), value); };
  constexpr double most = std::numeric_limits<float>::max();
  Value infinity =
      build::constant(b, loc, number.getType(), std::numeric_limits<double>::infinity());
  Value below = CompareOp::create(b, loc, other, constant(most), Predicate::le);
  Value above = CompareOp::create(b, loc, other, constant(-most), Predicate::ge);
  return SelectOp::create(b, loc, below, SelectOp::create(b, loc, above, number, infinity),
                          infinity);
}

Value guardedAsMade(OpBuilder &b, Location loc, Value ok, Value fresh, Value old,
                    llvm::function_ref<Value(Value, Value)> change) {
  Value made = build::behindReshapes(fresh);
  Value before = build::reshape(b, loc, old, build::shapeOf(made));
  Value kept = GuardOp::create(b, loc, ok, change(made, before), before);
  return build::reshape(b, loc, kept, build::shapeOf(fresh));
}

} // namespace hydra
