// Numbers of 8 bits with scales, and their matmul.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/QuantizationScale.h"
#include "dialects/hydra/Reference.h"

using namespace mlir;

namespace hydra {

static LogicalResult wantFormat(TypeInference &infer, Type format) {
  return isEightBitFloat(format)
             ? success()
             : infer.fail("cannot quantize to this format; expected " + kEightBitFloats);
}

/// Scales are numbers of f32; what is quantized may be rounded before.
#define EXACT_NUMBERS(Op, rounded)                                                                 \
  Precision Op::precisionClass() { return Precision::Exact; }                                      \
  bool Op::takesRounded(unsigned operand) { return operand < (rounded); }

EXACT_NUMBERS(QuantizationScaleOp, 0u)
EXACT_NUMBERS(QuantizeOp, 1u)
EXACT_NUMBERS(QuantizedMatmulOp, 2u)

#undef EXACT_NUMBERS

//===-- quantization_scale ------------------------------------------------------------------===//

LogicalResult QuantizationScaleOp::inferTypes(TypeInference &infer, Adaptor op,
                                              SmallVectorImpl<Type> &types) {
  types.push_back(op.getAmax().getType());
  if (failed(wantFormat(infer, op.getFormat())))
    return failure();
  return infer.wantExact(op.getAmax(), "largest magnitude", infer.shape(op.getAmax()));
}

LogicalResult QuantizationScaleOp::evaluate(ArrayRef<const RefTensor *> in,
                                            MutableArrayRef<RefTensor> out) {
  for (auto [amax, scale] : llvm::zip(in[0]->data, out[0].data))
    scale = quantizationScale(amax, getFormat());
  return success();
}

SmallVector<int64_t> QuantizationScaleOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getAmax()));
}
RowForm QuantizationScaleOp::operandForm(unsigned) { return formByRank(getAmax()); }

void QuantizationScaleOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                                   MutableArrayRef<RowValue> out) {
  out[0] = quantizationScale(RowTerm{&e, in[0]}, getFormat());
}

//===-- quantize ----------------------------------------------------------------------------===//

LogicalResult QuantizeOp::inferTypes(TypeInference &infer, Adaptor op,
                                     SmallVectorImpl<Type> &types) {
  types.push_back(infer.tensor(infer.shape(op.getX()), op.getFormat()));
  if (failed(wantFormat(infer, op.getFormat())) || failed(infer.wantFloat(op.getX(), "operand")))
    return failure();
  const bool one = infer.shape(op.getScale()).empty();
  return infer.wantExact(op.getScale(), "scale",
                         one ? ArrayRef<int64_t>() : infer.shape(op.getX()));
}

LogicalResult QuantizeOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const bool one = in[1]->size() == 1;
  for (auto [i, x, q] : llvm::enumerate(in[0]->data, out[0].data))
    q = x / in[1]->data[one ? 0 : i];
  return success();
}

SmallVector<int64_t> QuantizeOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getX()));
}
RowForm QuantizeOp::operandForm(unsigned operand) { return formByRank(getOperand(operand)); }

void QuantizeOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned>,
                          MutableArrayRef<RowValue> out) {
  // The quotient by a power of two.
  out[0] = e.cast(RowTerm{&e, in[0]} * (1.0 / RowTerm{&e, in[1]}), getFormat());
}

//===-- quantized_matmul --------------------------------------------------------------------===//

LogicalResult QuantizedMatmulOp::inferTypes(TypeInference &infer, Adaptor op,
                                            SmallVectorImpl<Type> &types) {
  const Value a = op.getA(), b = op.getB();
  for (auto [operand, name] : {std::pair(a, "first operand"), std::pair(b, "second operand")}) {
    if (!isEightBitFloat(infer.element(operand)))
      return infer.fail(Twine(name) + " has elements of another type; expected " + kEightBitFloats);
    if (failed(infer.wantRank(operand, name, 2)))
      return failure();
  }
  if (infer.shape(a)[1] != infer.shape(b)[1])
    return infer.fail("sums over " + Twine(infer.shape(a)[1]) + " elements of " +
                      shapeText(infer.shape(a)) + " but " + Twine(infer.shape(b)[1]) + " of " +
                      shapeText(infer.shape(b)));
  if (isa<Float8E5M2Type>(infer.element(a)) && isa<Float8E5M2Type>(infer.element(b)))
    return infer.fail("multiplies f8E5M2 by f8E5M2; expected at least one of f8E4M3FN");
  const bool byRows = !infer.shape(op.getScaleA()).empty();
  auto wantScale = [&](Value scale, StringRef name, int64_t rows) {
    return infer.wantExact(scale, name, byRows ? ArrayRef(rows) : ArrayRef<int64_t>());
  };
  if (failed(wantScale(op.getScaleA(), "first scale", infer.shape(a)[0])) ||
      failed(wantScale(op.getScaleB(), "second scale", infer.shape(b)[0])))
    return failure();
  if (!op.getDtype().isF32() && !isNarrowFloat(op.getDtype()))
    return infer.fail("cannot yield this element type; expected " + kModelFloats);
  types.push_back(infer.tensor({infer.shape(a)[0], infer.shape(b)[0]}, op.getDtype()));
  return success();
}

LogicalResult QuantizedMatmulOp::evaluate(ArrayRef<const RefTensor *> in,
                                          MutableArrayRef<RefTensor> out) {
  const RefTensor &a = *in[0], &b = *in[1];
  const bool byRows = !build::shapeOf(getScaleA()).empty();
  const int64_t k = a.cols(), n = b.rows();
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int64_t l = 0; l < k; ++l)
        sum += a.data[i * k + l] * b.data[j * k + l];
      out[0].data[i * n + j] = sum * in[2]->data[byRows ? i : 0] * in[3]->data[byRows ? j : 0];
    }
  return success();
}

int64_t QuantizedMatmulOp::flops() {
  return productOf({2, build::typeOf(getC()).getNumElements(), build::shapeOf(getA())[1]});
}
OpClass QuantizedMatmulOp::costClass() { return OpClass::gemm; }
OperandLayout QuantizedMatmulOp::operandLayout(unsigned operand) {
  if (operand >= 2)
    return {};
  return {/*denseInner=*/1, /*mergedRows=*/false, /*apartRows=*/true, /*alignment=*/16};
}
OperandLayout QuantizedMatmulOp::resultLayout(unsigned) { return operandLayout(0); }

} // namespace hydra
