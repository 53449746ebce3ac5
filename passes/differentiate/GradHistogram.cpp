// How many gradients have which magnitude, by operations that one generated kernel fuses: it reads
// every gradient once, and of a row of counters adds to the one that has the number's exponent.
#include "passes/differentiate/GradHistogram.h"

#include "dialects/hydra/Build.h"
#include "dialects/hydra/GradHistogram.h"

#include <numbers>

using namespace mlir;

namespace hydra {

/// Which counter the elements of `x [R, K]` f32 belong to, `[R, K]` i32. Intervals end halfway
/// between powers of two, where hardly a rounded number stands: so the last bit of a logarithm,
/// which targets may have different, decides nothing.
static Value counterOf(OpBuilder &b, Location loc, Value x) {
  const Type type = x.getType();
  auto number = [&](double value) { return build::constant(b, loc, type, value); };
  // Of zeros there is no logarithm; the square of the first interval's end is 2^-81.
  constexpr double least = 1e-30;
  Value squares = MaxOp::create(b, loc, MulOp::create(b, loc, x, x), number(least));
  Value exponents = build::scale(b, loc, LogOp::create(b, loc, squares), 0.5 / std::numbers::ln2);
  // Rounded to nearest, because conversions round towards zero.
  Value place = AddOp::create(b, loc, exponents, number(0.5 - double(kFirstExponent)));
  Value from = MaxOp::create(b, loc, place, number(0.0));
  Value counter = MinOp::create(b, loc, from, number(double(kExponents - 1)));
  return build::cast(b, loc, counter, b.getI32Type());
}

/// The numbers of all counters, along the last dimension of that shape.
static Value counters(OpBuilder &b, Location loc, ArrayRef<int64_t> shape) {
  return IotaOp::create(b, loc, RankedTensorType::get(shape, b.getI32Type()),
                        b.getI64ArrayAttr(shape),
                        b.getI64IntegerAttr(static_cast<int64_t>(shape.size()) - 1),
                        TypeAttr::get(b.getI32Type()), UnitAttr());
}

/// The counts without zeros that are no gradients. What was rounded stays a count.
static Value withoutPadding(OpBuilder &b, Location loc, Value counts, int64_t padding) {
  Value numbers = counters(b, loc, {kExponents});
  Value isFirst = CompareOp::create(
      b, loc, numbers, build::constant(b, loc, numbers.getType(), 0.0), b.getStringAttr("eq"));
  Value none = build::constant(b, loc, counts.getType(), 0.0);
  Value more = SelectOp::create(b, loc, isFirst,
                                build::constant(b, loc, counts.getType(), double(padding)), none);
  return MaxOp::create(b, loc, SubOp::create(b, loc, counts, more), none);
}

Value countExponents(OpBuilder &b, Location loc, ValueRange gradients, Value inverse,
                     int64_t padding) {
  Value total;
  for (Value gradient : gradients) {
    ArrayRef<int64_t> shape = build::shapeOf(gradient);
    const int64_t columns = shape.empty() ? 1 : shape.back();
    const int64_t rows = build::typeOf(gradient).getNumElements() / columns;
    Value x =
        build::cast(b, loc, build::reshape(b, loc, gradient, {rows, columns}), b.getF32Type());
    if (inverse)
      x = MulOp::create(b, loc, x, build::broadcast(b, loc, inverse, {rows, columns}));
    Value own = build::reshape(b, loc, counterOf(b, loc, x), {rows, columns, 1});
    const SmallVector<int64_t> all{rows, columns, kExponents};
    Value hit = CompareOp::create(
        b, loc, build::broadcast(b, loc, own, all),
        build::broadcast(b, loc, counters(b, loc, {1, 1, kExponents}), all), b.getStringAttr("eq"));
    Value counts = build::sum(b, loc, build::cast(b, loc, hit, b.getF32Type()), {0, 1});
    total = total ? AddOp::create(b, loc, total, counts).getResult() : counts;
  }
  return padding > 0 ? withoutPadding(b, loc, total, padding) : total;
}

} // namespace hydra
