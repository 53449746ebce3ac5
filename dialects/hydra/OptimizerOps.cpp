// What updates of parameters share: the norm of all gradients, and the guard of new values.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Reference.h"

#include <cmath>

using namespace mlir;

namespace hydra {

//===-- global_norm -------------------------------------------------------------------------===//

LogicalResult GlobalNormOp::inferTypes(TypeInference &infer, Adaptor op,
                                       SmallVectorImpl<Type> &types) {
  if (op.getTensors().empty())
    return infer.fail("has no operands; expected at least 1");
  for (Value v : op.getTensors())
    if (failed(infer.wantFloat(v, "operand")))
      return failure();
  types.push_back(infer.tensor({}, infer.f32()));
  return success();
}

LogicalResult GlobalNormOp::evaluate(ArrayRef<const RefTensor *> in,
                                     MutableArrayRef<RefTensor> out) {
  double sum = 0.0;
  for (const RefTensor *tensor : in)
    for (double v : tensor->data)
      sum += v * v;
  out[0].data[0] = std::sqrt(sum);
  return success();
}

Value GlobalNormOp::sumOfSquares(OpBuilder &b, Location loc, ValueRange tensors) {
  Value total;
  for (Value v : tensors) {
    int64_t columns = build::shapeOf(v).empty() ? 1 : build::shapeOf(v).back();
    int64_t rows = build::typeOf(v).getNumElements() / columns;
    Value x = build::cast(b, loc, build::reshape(b, loc, v, {rows, columns}), b.getF32Type());
    Value sum = build::sum(b, loc, MulOp::create(b, loc, x, x), {0, 1});
    total = total ? AddOp::create(b, loc, total, sum) : sum;
  }
  return total;
}

SmallVector<Value> GlobalNormOp::buildRowWiseForm(OpBuilder &b) {
  return {SqrtOp::create(b, getLoc(), sumOfSquares(b, getLoc(), getTensors()))};
}

int64_t GlobalNormOp::flops() {
  int64_t n = 0;
  for (Value v : getTensors())
    n += 2 * build::typeOf(v).getNumElements();
  return n;
}
OpClass GlobalNormOp::costClass() { return OpClass::optimizer; }
Precision GlobalNormOp::precisionClass() { return Precision::Exact; }
bool GlobalNormOp::takesRounded(unsigned) { return true; }
SmallVector<unsigned> GlobalNormOp::overwritableOperands(unsigned) { return {}; }

//===-- guard -------------------------------------------------------------------------------===//

LogicalResult GuardOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (!infer.element(op.getOk()).isInteger(1))
    return infer.fail("guard does not hold truth values (i1)");
  if (failed(infer.wantShape(op.getOk(), "guard", {})) ||
      failed(infer.wantSameType(op.getFresh(), "new value", op.getOld(), "old value")))
    return failure();
  types.push_back(op.getOld().getType());
  return success();
}

LogicalResult GuardOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  out[0].data = in[in[0]->data[0] != 0.0 ? 1 : 2]->data;
  return success();
}

int64_t GuardOp::flops() { return 0; }
OpClass GuardOp::costClass() { return OpClass::optimizer; }
Precision GuardOp::precisionClass() { return Precision::Exact; }
/// What is refused must leave the old value as it is: it is never rounded on its way.
bool GuardOp::takesRounded(unsigned) {
  auto isNarrow = [](Value v) {
    const Type element = build::typeOf(v).getElementType();
    return isNarrowFloat(element) || isEightBitFloat(element);
  };
  return isNarrow(getFresh()) && isNarrow(getOld());
}
SmallVector<unsigned> GuardOp::overwritableOperands(unsigned) { return {1, 2}; }

SmallVector<int64_t> GuardOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getKept()));
}
RowForm GuardOp::operandForm(unsigned operand) {
  return operand == 0 ? RowForm::Scalar : RowForm::Tile;
}

void GuardOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                       MutableArrayRef<RowValue> out) {
  out[0] = e.select(in[0], in[1], in[2]);
}

} // namespace hydra
