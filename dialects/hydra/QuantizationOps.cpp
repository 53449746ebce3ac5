// Numbers of 8 bits with scales, and their matmul.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/PackedNumbers.h"
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
EXACT_NUMBERS(ScaledLinearOp, 0u)

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

namespace {
/// What has a scale of its own in an operand `[rows, K]`.
enum class ScaleForm {
  Whole,     ///< [] the operand
  Rows,      ///< [rows] each row
  RowBlocks, ///< [K / 128, rows] each 128 elements of a row
  Blocks,    ///< [rows / 128, K / 128] each block of 128 rows and 128 elements
};
} // namespace

static SmallVector<int64_t> scaleShape(ScaleForm form, ArrayRef<int64_t> operand) {
  const int64_t rows = operand[0], k = operand[1];
  switch (form) {
  case ScaleForm::Whole:
    return {};
  case ScaleForm::Rows:
    return {rows};
  case ScaleForm::RowBlocks:
    return {support::scaleBlocks(k), rows};
  case ScaleForm::Blocks:
    return {support::scaleBlocks(rows), support::scaleBlocks(k)};
  }
  llvm_unreachable("four forms");
}

/// By the rank of the scale, and by its shape where that leaves two. Of one row with one block
/// these are the same.
static ScaleForm scaleForm(ArrayRef<int64_t> scale, ArrayRef<int64_t> operand) {
  if (scale.size() < 2)
    return scale.empty() ? ScaleForm::Whole : ScaleForm::Rows;
  return scale != ArrayRef(scaleShape(ScaleForm::RowBlocks, operand)) &&
                 scale == ArrayRef(scaleShape(ScaleForm::Blocks, operand))
             ? ScaleForm::Blocks
             : ScaleForm::RowBlocks;
}

/// The scale of an element of such an operand.
static double scaleAt(const RefTensor &scale, ScaleForm form, int64_t row, int64_t k) {
  switch (form) {
  case ScaleForm::Whole:
    return scale.data[0];
  case ScaleForm::Rows:
    return scale.data[row];
  case ScaleForm::RowBlocks:
    return scale.data[k / support::kScaleBlock * scale.cols() + row];
  case ScaleForm::Blocks:
    return scale.data[row / support::kScaleBlock * scale.cols() + k / support::kScaleBlock];
  }
  llvm_unreachable("four forms");
}

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
  // Both have scales of one kind, but that blocks may be of one row or of many.
  const size_t rank = std::min<size_t>(infer.shape(op.getScaleA()).size(), 2);
  auto wantScale = [&](Value operand, Value scale, StringRef name) {
    const ScaleForm form = infer.shape(scale).size() == rank
                               ? scaleForm(infer.shape(scale), infer.shape(operand))
                               : static_cast<ScaleForm>(rank);
    return infer.wantExact(scale, name, scaleShape(form, infer.shape(operand)));
  };
  if (failed(wantScale(a, op.getScaleA(), "first scale")) ||
      failed(wantScale(b, op.getScaleB(), "second scale")))
    return failure();
  if (scaleForm(infer.shape(op.getScaleA()), infer.shape(a)) == ScaleForm::Blocks &&
      scaleForm(infer.shape(op.getScaleB()), infer.shape(b)) == ScaleForm::Blocks)
    return infer.fail(
        "has scales of many rows for both operands; expected at least one with scales "
        "of single rows");
  if (!op.getDtype().isF32() && !isNarrowFloat(op.getDtype()))
    return infer.fail("cannot yield this element type; expected " + kModelFloats);
  types.push_back(infer.tensor({infer.shape(a)[0], infer.shape(b)[0]}, op.getDtype()));
  return success();
}

LogicalResult QuantizedMatmulOp::evaluate(ArrayRef<const RefTensor *> in,
                                          MutableArrayRef<RefTensor> out) {
  const RefTensor &a = *in[0], &b = *in[1];
  const RefTensor &scaleA = *in[2], &scaleB = *in[3];
  const ScaleForm ofA = scaleForm(scaleA.shape, a.shape), ofB = scaleForm(scaleB.shape, b.shape);
  const int64_t k = a.cols(), n = b.rows(), block = scaleA.rank() < 2 ? k : support::kScaleBlock;
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < n; ++j) {
      double total = 0.0;
      for (int64_t begin = 0; begin < k; begin += block) {
        double sum = 0.0;
        for (int64_t l = begin; l < std::min(begin + block, k); ++l)
          sum += a.data[i * k + l] * b.data[j * k + l];
        total += sum * scaleAt(scaleA, ofA, i, begin) * scaleAt(scaleB, ofB, j, begin);
      }
      out[0].data[i * n + j] = total;
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

//===-- scaled_linear -----------------------------------------------------------------------===//

/// Bytes of a row that kernels load at a time.
static constexpr int64_t kWeightBytes = 16;
static_assert(support::kInt4Bytes == kWeightBytes);

/// Whether bytes of a weight have two numbers: groups of those have scales, in bf16.
static bool isPacked(Value w, Value scale) {
  const RankedTensorType type = build::typeOf(scale);
  return type.getRank() == 2 && type.getElementType().isBF16() &&
         type.getDimSize(0) == build::shapeOf(w)[0];
}

LogicalResult ScaledLinearOp::inferTypes(TypeInference &infer, Adaptor op,
                                         SmallVectorImpl<Type> &types) {
  const Value x = op.getX(), w = op.getW();
  if (!infer.element(x).isF32() && !isNarrowFloat(infer.element(x)))
    return infer.fail("input has elements of another type; expected " + kModelFloats);
  if (!isInt8(infer.element(w)))
    return infer.fail("weight has elements of another type; expected i8");
  if (failed(infer.wantRank(w, "weight", 2)))
    return failure();
  const bool packed = isPacked(w, op.getScale());
  const int64_t each = packed ? 2 : 1, least = each * kWeightBytes; // of a byte, and of K
  SmallVector<int64_t> shape(infer.shape(x));
  if (shape.empty() || shape.back() != each * infer.shape(w)[1] || shape.back() % least != 0)
    return infer.fail("weight is " + shapeText(infer.shape(w)) + " and the input " +
                      shapeText(shape) + "; expected " + (packed ? "[N, K/2]" : "[N, K]") +
                      " and [..., K], K a multiple of " + Twine(least));
  const int64_t rows = infer.type(x).getNumElements() / shape.back();
  if (rows > support::kMostInt8Rows)
    return infer.fail("input has " + Twine(rows) + " rows; expected at most " +
                      Twine(support::kMostInt8Rows));
  const int64_t columns = std::exchange(shape.back(), infer.shape(w)[0]);
  if (packed ? failed(infer.wantShape(op.getScale(), "scale",
                                      groupScaleShape({shape.back(), columns})))
             : failed(infer.wantExact(op.getScale(), "scale", {shape.back()})))
    return failure();
  if (failed(infer.pushMatmul(shape, infer.element(x), op.getDtypeAttr(), TypeAttr(), types)))
    return failure();
  if (!op.getB())
    return success();
  if (infer.element(op.getB()) != cast<RankedTensorType>(types.back()).getElementType())
    return infer.fail("bias has another element type than the result");
  return infer.wantShape(op.getB(), "bias", {shape.back()});
}

LogicalResult ScaledLinearOp::evaluate(ArrayRef<const RefTensor *> in,
                                       MutableArrayRef<RefTensor> out) {
  const RefTensor &x = *in[0];
  const bool packed = isPacked(getW(), getScale());
  const RefTensor w = packed ? unpackedInt4(*in[1], *in[2]) : *in[1];
  const int64_t k = x.cols(), n = w.rows();
  for (int64_t t = 0; t < x.rows(); ++t)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int64_t i = 0; i < k; ++i)
        sum += x.data[t * k + i] * w.data[j * k + i];
      const double scale = packed ? 1.0 : in[2]->data[j];
      out[0].data[t * n + j] = sum * scale + (in.size() > 3 ? in[3]->data[j] : 0.0);
    }
  return success();
}

int64_t ScaledLinearOp::flops() {
  return productOf({2, build::typeOf(getY()).getNumElements(), build::shapeOf(getX()).back()});
}
OpClass ScaledLinearOp::costClass() { return OpClass::gemm; }
/// Rows lie at multiples of what kernels load at a time.
OperandLayout ScaledLinearOp::operandLayout(unsigned operand) {
  if (operand >= 2)
    return {};
  return {/*denseInner=*/std::nullopt, /*mergedRows=*/true, /*apartRows=*/false,
          /*alignment=*/16};
}
OperandLayout ScaledLinearOp::resultLayout(unsigned) {
  return {/*denseInner=*/1, /*mergedRows=*/true, /*apartRows=*/false, /*alignment=*/16};
}

} // namespace hydra
