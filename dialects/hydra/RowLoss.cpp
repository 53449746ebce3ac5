// Cross entropy of rows of logits, written as row-wise operations.
#include "dialects/hydra/RowLoss.h"

#include "dialects/hydra/Build.h"

using namespace mlir;

namespace hydra {

Value RowLoss::spread(Value v) const {
  int64_t rows = build::shapeOf(logits)[0];
  return build::broadcast(b, loc, build::reshape(b, loc, v, {rows, 1}), build::shapeOf(logits));
}

Value RowLoss::hits() const {
  ArrayRef<int64_t> shape = build::shapeOf(logits);
  auto type = RankedTensorType::get(shape, b.getI32Type());
  Value column =
      IotaOp::create(b, loc, type, b.getI64ArrayAttr(shape), b.getI64IntegerAttr(1), TypeAttr());
  return CompareOp::create(b, loc, column, spread(labels), Predicate::eq);
}

Value RowLoss::whereNamed(Value v) const {
  const int64_t count = classes > 0 ? classes : build::shapeOf(logits)[1];
  Value zero = build::constant(b, loc, v.getType(), 0.0);
  Value none = DivOp::create(b, loc, zero, zero);
  Value first = build::constant(b, loc, labels.getType(), 0.0),
        last = build::constant(b, loc, labels.getType(), static_cast<double>(count - 1));
  Value nearest = MinOp::create(b, loc, MaxOp::create(b, loc, labels, first), last);
  Value named = CompareOp::create(b, loc, labels, nearest, Predicate::eq);
  return SelectOp::create(b, loc, named, v, none);
}

Value RowLoss::validRows(OpBuilder &b, Location loc, Value labels) {
  Value ignored = build::constant(b, loc, labels.getType(), -100.0);
  return CompareOp::create(b, loc, labels, ignored, Predicate::ne);
}

Value RowLoss::countOf(OpBuilder &b, Location loc, Value labels) {
  auto type = RankedTensorType::get(build::shapeOf(labels), b.getF32Type());
  Value counted =
      SelectOp::create(b, loc, validRows(b, loc, labels), build::constant(b, loc, type, 1.0),
                       build::constant(b, loc, type, 0.0));
  return build::sum(b, loc, counted, {0});
}

Value RowLoss::shareOfRow(OpBuilder &b, Location loc, Value labels, Value count) {
  auto one = [&] {
    return build::constant(b, loc, RankedTensorType::get({}, b.getF32Type()), 1.0);
  };
  if (!count) {
    Value valid = countOf(b, loc, labels);
    count = MaxOp::create(b, loc, valid, one());
  }
  return DivOp::create(b, loc, one(), count);
}

Value RowLoss::logSumExp() const {
  ArrayAttr lastAxis = b.getI64ArrayAttr({1});
  Value top = ReduceMaxOp::create(b, loc, logits, lastAxis, UnitAttr());
  Value e = ExpOp::create(b, loc, SubOp::create(b, loc, logits, spread(top)));
  Value sum = SumOp::create(b, loc, e, lastAxis, UnitAttr());
  return AddOp::create(b, loc, top, LogOp::create(b, loc, sum));
}

Value RowLoss::losses(Value lse) const {
  Value zeros = build::constant(b, loc, logits.getType(), 0.0);
  Value picked = build::sum(b, loc, SelectOp::create(b, loc, hits(), logits, zeros), {1});
  return SelectOp::create(b, loc, validRows(b, loc, labels),
                          whereNamed(SubOp::create(b, loc, lse, picked)),
                          build::constant(b, loc, lse.getType(), 0.0));
}

Value RowLoss::gradient(Value lse, Value weight) const {
  Value p = ExpOp::create(b, loc, SubOp::create(b, loc, logits, spread(lse)));
  Value onehot = SelectOp::create(b, loc, hits(), build::constant(b, loc, logits.getType(), 1.0),
                                  build::constant(b, loc, logits.getType(), 0.0));
  Value weights =
      SelectOp::create(b, loc, validRows(b, loc, labels),
                       whereNamed(build::broadcast(b, loc, weight, build::shapeOf(lse))),
                       build::constant(b, loc, lse.getType(), 0.0));
  return MulOp::create(b, loc, SubOp::create(b, loc, p, onehot), spread(weights));
}

} // namespace hydra
