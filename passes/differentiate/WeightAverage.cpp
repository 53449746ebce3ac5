// Averages of the values that updates give to parameters.
#include "passes/differentiate/WeightAverage.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

Value shareInAverage(OpBuilder &b, Location loc, Value number, double emaDecay, int64_t swaFrom) {
  Value count = build::cast(b, loc, number, b.getF32Type());
  Type type = count.getType();
  Value one = build::constant(b, loc, type, 1.0);
  if (emaDecay > 0)
    return MaxOp::create(b, loc, build::constant(b, loc, type, 1.0 - emaDecay),
                         DivOp::create(b, loc, one, count));
  Value before = build::constant(b, loc, type, static_cast<double>(swaFrom - 1));
  return DivOp::create(b, loc, one,
                       MaxOp::create(b, loc, one, SubOp::create(b, loc, count, before)));
}

Value movedAverage(OpBuilder &b, Location loc, Value average, Value fresh, Value share) {
  // The slope is wd average + scale fresh.
  Value scale = build::constant(b, loc, share.getType(), -1.0);
  const Attribute one = b.getF64FloatAttr(1.0);
  auto step = SgdOp::create(b, loc, SmallVector<Value>{average, fresh, share, scale}, Attribute(),
                            one, one, UnitAttr());
  return step->getResult(0);
}

} // namespace hydra
