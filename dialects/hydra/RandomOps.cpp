// Random numbers, and what drops by them.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"
#include "dialects/hydra/RowMath.h"
#include "runtime/support/Philox.h"

#include <limits>

using namespace mlir;

namespace hydra {

//===-- random ------------------------------------------------------------------------------===//

namespace {

/// The word of a number that is i32.
uint32_t wordOf(double number) { return static_cast<uint32_t>(static_cast<int64_t>(number)); }

/// Words of a group.
struct RowWords {
  RowEmitter &e;
  Type i32;

  RowValue constant(uint32_t bits) const { return e.constant(static_cast<int32_t>(bits), i32); }
  RowValue low(RowValue a, RowValue b) const { return e.binary(RowBinary::Mul, a, b); }
  RowValue high(RowValue a, RowValue b) const { return e.binary(RowBinary::MulHigh, a, b); }
  RowValue add(RowValue a, RowValue b) const { return e.binary(RowBinary::Add, a, b); }
  RowValue exclusiveOr(RowValue a, RowValue b) const { return e.binary(RowBinary::Xor, a, b); }
};

} // namespace

LogicalResult RandomOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  constexpr int64_t most = std::numeric_limits<uint32_t>::max();
  if (op.getStream() < 0 || op.getStream() > most)
    return infer.fail("has the stream " + Twine(op.getStream()) + "; expected 0 to " + Twine(most));
  if (failed(infer.wantInteger(op.getLow(), "low word of the key")) ||
      failed(infer.wantSameType(op.getLow(), "low word of the key", op.getHigh(), "high word")) ||
      failed(infer.wantSameType(op.getLow(), "low word of the key", op.getRow(), "row")) ||
      failed(infer.wantSameType(op.getLow(), "low word of the key", op.getColumn(), "column")))
    return failure();
  types.push_back(op.getLow().getType());
  return success();
}

LogicalResult RandomOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const auto stream = static_cast<uint32_t>(getStream());
  for (int64_t i = 0; i < out[0].size(); ++i) {
    auto word = [&](unsigned operand) { return wordOf(in[operand]->data[i]); };
    const auto words = support::philox4x32({word(2), word(3), stream, 0}, {word(0), word(1)},
                                           support::kFewestPhiloxRounds);
    out[0].data[i] = static_cast<int32_t>(words[0]);
  }
  return success();
}

void RandomOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                        MutableArrayRef<RowValue> out) {
  const RowWords on{e, IntegerType::get(getContext(), 32)};
  const RowValue stream = on.constant(static_cast<uint32_t>(getStream()));
  const std::array<RowValue, 4> counter{in[2], in[3], stream, on.constant(0)};
  const std::array<RowValue, 2> key{in[0], in[1]};
  out[0] = support::philoxRounds(counter, key, support::kFewestPhiloxRounds, on)[0];
}

SmallVector<int64_t> RandomOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getY()));
}
SmallVector<unsigned> RandomOp::overwritableOperands(unsigned) { return {0, 1, 2, 3}; }
OperandLayout RandomOp::operandLayout(unsigned) { return rowStrided(); }

//===-- dropout -----------------------------------------------------------------------------===//

LogicalResult DropoutOp::inferTypes(TypeInference &infer, Adaptor op,
                                    SmallVectorImpl<Type> &types) {
  // One that depends on the layer is known when layers are written out.
  if (!hasExpr(op.getPAttr()) && !(op.getP() >= 0.0 && op.getP() < 1.0))
    return infer.fail("drops a part of " + numberText(op.getP()) +
                      "; expected at least 0 and less than 1");
  types.push_back(op.getX().getType());
  if (failed(infer.wantFloat(op.getX(), "operand")))
    return failure();
  Value kept = op.getKept();
  if (!kept)
    return success();
  if (!infer.element(kept).isInteger(1))
    return infer.fail("second operand does not hold truth values (i1)");
  return infer.wantShape(kept, "second operand", infer.shape(op.getX()));
}

LogicalResult DropoutOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const double factor = getKept() ? 1.0 / (1.0 - getP()) : 1.0;
  for (int64_t i = 0; i < out[0].size(); ++i)
    if (!getKept() || in[1]->data[i] != 0.0)
      out[0].data[i] = in[0]->data[i] * factor;
  return success();
}

void DropoutOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                         MutableArrayRef<RowValue> out) {
  const RowTerm x{&e, in[0]};
  out[0] = x;
  if (getKept())
    out[0] = e.select(in[1], x * (1.0 / (1.0 - getP())), x.constant(0.0));
}

SmallVector<int64_t> DropoutOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getY()));
}
SmallVector<unsigned> DropoutOp::overwritableOperands(unsigned) { return {0}; }
OperandLayout DropoutOp::operandLayout(unsigned) { return rowStrided(); }

bool DropoutOp::givesZero(llvm::function_ref<bool(unsigned)> isZero) { return isZero(0); }

void DropoutOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  grads[0] = DropoutOp::create(b, getLoc(), g[0], getKept(), getPAttr());
}

OpFoldResult DropoutOp::fold(FoldAdaptor) {
  const bool bound = !isUnbound(getType()) && !hasExpr(getPAttr());
  return bound && getP() == 0.0 ? OpFoldResult(getX()) : OpFoldResult();
}

} // namespace hydra
