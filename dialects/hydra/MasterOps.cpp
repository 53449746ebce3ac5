// Parameters that are held in two halves.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Reference.h"
#include "runtime/support/DType.h"
#include "runtime/support/SplitFloat.h"

#include <cmath>

using namespace mlir;

namespace hydra {

#define MASTER_OP(Op, operand)                                                                     \
  Precision Op::precisionClass() { return Precision::Exact; }                                      \
  bool Op::takesRounded(unsigned) { return false; }                                                \
  OperandLayout Op::operandLayout(unsigned) { return rowStrided(); }                               \
  SmallVector<int64_t> Op::rowWiseShape() { return SmallVector<int64_t>(build::shapeOf(operand)); }

MASTER_OP(SplitMasterOp, getX())
MASTER_OP(JoinMasterOp, getHigh())

#undef MASTER_OP

//===-- split_master ------------------------------------------------------------------------===//

LogicalResult SplitMasterOp::inferTypes(TypeInference &infer, Adaptor op,
                                        SmallVectorImpl<Type> &types) {
  const ArrayRef<int64_t> shape = infer.shape(op.getX());
  types.push_back(infer.tensor(shape, BFloat16Type::get(infer.context)));
  types.push_back(infer.tensor(shape, IntegerType::get(infer.context, 16)));
  return infer.wantExact(op.getX(), "operand", shape);
}

LogicalResult SplitMasterOp::evaluate(ArrayRef<const RefTensor *> in,
                                      MutableArrayRef<RefTensor> out) {
  for (auto [i, x] : llvm::enumerate(in[0]->data)) {
    const support::SplitFloat halves = support::splitFloat(static_cast<float>(x));
    out[0].data[i] = support::bf16ToFloat(halves.high);
    out[1].data[i] = halves.rest;
  }
  return success();
}

void SplitMasterOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                             MutableArrayRef<RowValue> out) {
  constexpr double nan = 0x7fc00000; // of which adding half a unit leaves one
  const Type integer = IntegerType::get(getContext(), 32);
  const RowValue bits = e.select(e.compare(Predicate::ne, in[0], in[0]), e.constant(nan, integer),
                                 e.unary(RowUnary::Bits, in[0]));
  out[1] = e.cast(bits, IntegerType::get(getContext(), 16));
  const RowValue high = e.binary(RowBinary::Sub, bits, e.cast(out[1], integer));
  out[0] = e.cast(e.unary(RowUnary::OfBits, high), BFloat16Type::get(getContext()));
}

//===-- join_master -------------------------------------------------------------------------===//

LogicalResult JoinMasterOp::inferTypes(TypeInference &infer, Adaptor op,
                                       SmallVectorImpl<Type> &types) {
  const ArrayRef<int64_t> shape = infer.shape(op.getHigh());
  types.push_back(infer.tensor(shape, Float32Type::get(infer.context)));
  if (!infer.element(op.getHigh()).isBF16())
    return infer.fail("upper half has other elements than bf16");
  if (!isMasterRest(infer.element(op.getRest())))
    return infer.fail("rest has other elements than i16");
  return infer.wantShape(op.getRest(), "rest", shape);
}

LogicalResult JoinMasterOp::evaluate(ArrayRef<const RefTensor *> in,
                                     MutableArrayRef<RefTensor> out) {
  for (auto [high, rest, x] : llvm::zip(in[0]->data, in[1]->data, out[0].data))
    x = support::joinFloat(
        {support::bf16FromDouble(high), static_cast<int16_t>(std::lround(rest))});
  return success();
}

void JoinMasterOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                            MutableArrayRef<RowValue> out) {
  const Type integer = IntegerType::get(getContext(), 32);
  const RowValue bits = e.unary(RowUnary::Bits, e.cast(in[0], Float32Type::get(getContext())));
  out[0] = e.unary(RowUnary::OfBits, e.binary(RowBinary::Add, bits, e.cast(in[1], integer)));
}

} // namespace hydra
