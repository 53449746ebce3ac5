// Matmuls and the embedding lookup.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/NumberFormats.h"
#include "dialects/hydra/Reference.h"

#include "mlir/IR/PatternMatch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace hydra {

//===-- linear ------------------------------------------------------------------------------===//

static LogicalResult inferLinear(TypeInference &infer, Value x, Value w, Value b, TypeAttr dtype,
                                 TypeAttr compute, SmallVectorImpl<Type> &types) {
  if (failed(infer.wantFloat(x, "input")) || failed(infer.wantRank(w, "weight", 2)))
    return failure();
  SmallVector<int64_t> shape(infer.shape(x));
  if (shape.empty())
    return infer.fail("input is a scalar; expected [..., K]");
  if (shape.back() != infer.shape(w)[1])
    return infer.fail("weight is " + shapeText(infer.shape(w)) + " but the input has " +
                      Twine(shape.back()) + " columns; expected [N, " + Twine(shape.back()) + "]");
  if (infer.element(x) != infer.element(w))
    return infer.fail("input and weight have different element types");
  shape.back() = infer.shape(w)[0];
  if (b &&
      (failed(infer.wantFloat(b, "bias")) || failed(infer.wantShape(b, "bias", {shape.back()}))))
    return failure();
  if (failed(infer.pushMatmul(shape, infer.element(x), dtype, compute, types)))
    return failure();
  if (b && infer.element(b) != cast<RankedTensorType>(types.back()).getElementType())
    return infer.fail("bias has another element type than the result");
  return success();
}

/// Formats are given together, of 8 bits each.
static LogicalResult wantFormats(TypeInference &infer, TypeAttr first, TypeAttr second) {
  if (!first && !second)
    return success();
  if (first && second && isEightBitFloat(first.getValue()) && isEightBitFloat(second.getValue()))
    return success();
  return infer.fail("is quantized to one format or to another than " + kEightBitFloats +
                    "; expected two of these");
}

LogicalResult LinearOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (failed(wantFormats(infer, op.getQuantizeAttr(), op.getQuantizeGradientAttr())))
    return failure();
  return inferLinear(infer, op.getX(), op.getW(), op.getB(), op.getDtypeAttr(), op.getComputeAttr(),
                     types);
}

static void evaluateLinear(ArrayRef<const RefTensor *> in, RefTensor &out) {
  const RefTensor &x = *in[0], &w = *in[1];
  int64_t k = x.cols(), n = w.shape[0];
  for (int64_t t = 0; t < x.rows(); ++t)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int64_t i = 0; i < k; ++i)
        sum += x.data[t * k + i] * w.data[j * k + i];
      out.data[t * n + j] = in.size() > 2 ? sum + in[2]->data[j] : sum;
    }
}

LogicalResult LinearOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  evaluateLinear(in, out[0]);
  return success();
}

int64_t LinearOp::flops() {
  return productOf({2, build::typeOf(getY()).getNumElements(), build::shapeOf(getW())[1]});
}
OpClass LinearOp::costClass() { return OpClass::gemm; }
Precision LinearOp::precisionClass() { return getCompute() ? Precision::Full : Precision::Matmul; }
/// The bias has the type of the result, as libraries want it.
bool LinearOp::takesRounded(unsigned operand) {
  return !getCompute() && (operand < 2 || !getDtype());
}
bool LinearOp::yieldIn(Type format) {
  if (isSumFormat(format)) {
    setDtype(format);
    return true;
  }
  if (getB() || build::typeOf(getX()).getElementType() != format)
    return false;
  removeDtypeAttr();
  return true;
}
void LinearOp::allowReducedReduction() { setReducedReduction(true); }
bool LinearOp::multiplyIn(Type format) {
  setCompute(format);
  return true;
}
bool LinearOp::paysToSkipRows() { return true; }
Type LinearOp::multipliedIn(unsigned operand) { return formatOfFactor(operand, getCompute()); }
SmallVector<unsigned> LinearOp::overwritableOperands(unsigned) { return {}; }
OperandLayout LinearOp::resultLayout(unsigned) {
  return {/*denseInner=*/1, /*mergedRows=*/true, /*apartRows=*/false, /*alignment=*/16};
}
OperandLayout LinearOp::operandLayout(unsigned) {
  return {/*denseInner=*/1, /*mergedRows=*/true, /*apartRows=*/false, /*alignment=*/16};
}

RowUse LinearOp::rowUse(unsigned operand) { return operand == 0 ? RowUse::Each : RowUse::All; }
RowUse LinearGeluOp::rowUse(unsigned operand) { return operand == 0 ? RowUse::Each : RowUse::All; }

//===-- What is quantized -------------------------------------------------------------------===//

Value LinearOp::getWeight() { return getW(); }
void LinearOp::quantizeTo(Type operands, Type gradient) {
  setQuantize(operands);
  setQuantizeGradient(gradient);
}
std::optional<MatmulToQuantize> LinearOp::matmulToQuantize() {
  if (!getQuantize())
    return std::nullopt;
  return MatmulToQuantize{{getX(), *getQuantize(), /*transposed=*/false},
                          {getW(), *getQuantize(), /*transposed=*/false},
                          getB()};
}
std::optional<MatmulToQuantize> MatmulOp::matmulToQuantize() {
  if (!getQuantizeA() || getAddend())
    return std::nullopt;
  return MatmulToQuantize{{getA(), *getQuantizeA(), getTransposeA()},
                          {getB(), *getQuantizeB(), !getTransposeB()},
                          Value()};
}

void LinearOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Location loc = getLoc();
  if (getB()) // first, so that it can be summed where the gradient is computed
    grads[2] = build::sumTo(b, loc, g[0], build::shapeOf(getB()));
  Value rounded = build::cast(b, loc, g[0], build::typeOf(getX()).getElementType());
  Value dy = build::flattenRows(b, loc, rounded), x = build::flattenRows(b, loc, getX());
  auto matmul = [&](Value other, UnitAttr transposed) {
    auto made = MatmulOp::create(b, loc, dy, other, Value(), transposed, UnitAttr(), TypeAttr(),
                                 UnitAttr(), getComputeAttr());
    made.setQuantizeAAttr(getQuantizeGradientAttr());
    made.setQuantizeBAttr(getQuantizeAttr());
    return made;
  };
  Value dx = matmul(getW(), UnitAttr());
  grads[0] = build::reshape(b, loc, dx, build::shapeOf(getX()));
  grads[1] = matmul(x, b.getUnitAttr());
}

//===-- linear_gelu -------------------------------------------------------------------------===//

LogicalResult LinearGeluOp::inferTypes(TypeInference &infer, Adaptor op,
                                       SmallVectorImpl<Type> &types) {
  if (failed(inferLinear(infer, op.getX(), op.getW(), op.getB(), TypeAttr(), TypeAttr(), types)))
    return failure();
  if (op.getSaving())
    types.push_back(types.front());
  return success();
}

LogicalResult LinearGeluOp::evaluate(ArrayRef<const RefTensor *> in,
                                     MutableArrayRef<RefTensor> out) {
  evaluateLinear(in, out[0]);
  if (getSaving())
    out[1].data = out[0].data;
  for (double &x : out[0].data)
    x = geluOf(x);
  return success();
}

int64_t LinearGeluOp::flops() {
  return productOf({build::typeOf(getY()).getNumElements(), 2 * build::shapeOf(getW())[1] + 1});
}
OpClass LinearGeluOp::costClass() { return OpClass::gemm; }
Precision LinearGeluOp::precisionClass() { return Precision::Matmul; }
bool LinearGeluOp::takesRounded(unsigned) { return true; }
void LinearGeluOp::allowReducedReduction() { setReducedReduction(true); }
bool LinearGeluOp::paysToSkipRows() { return true; }
SmallVector<unsigned> LinearGeluOp::overwritableOperands(unsigned) { return {}; }
OperandLayout LinearGeluOp::resultLayout(unsigned) { return operandLayout(0); }
OperandLayout LinearGeluOp::operandLayout(unsigned) {
  return {/*denseInner=*/1, /*mergedRows=*/true, /*apartRows=*/false, /*alignment=*/16};
}

//===-- matmul ------------------------------------------------------------------------------===//

namespace {
/// Sizes of one matmul of a batch.
struct MatmulSizes {
  int64_t m, n, k;
};
} // namespace

static MatmulSizes matmulSizes(ArrayRef<int64_t> a, ArrayRef<int64_t> b, bool ta, bool tb) {
  size_t ra = a.size(), rb = b.size();
  return {a[ta ? ra - 1 : ra - 2], b[tb ? rb - 2 : rb - 1], a[ta ? ra - 2 : ra - 1]};
}

LogicalResult MatmulOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  ArrayRef<int64_t> a = infer.shape(op.getA()), b = infer.shape(op.getB());
  if (failed(infer.wantFloat(op.getA(), "first operand")))
    return failure();
  if (a.size() < 2 || b.size() < 2 || a.drop_back(2) != b.drop_back(2))
    return infer.fail("operands are " + shapeText(a) + " and " + shapeText(b) +
                      "; expected two matrices or equal batches of them");
  MatmulSizes s = matmulSizes(a, b, op.getTransposeA(), op.getTransposeB());
  int64_t kb = b[op.getTransposeB() ? b.size() - 1 : b.size() - 2];
  if (s.k != kb)
    return infer.fail("sums over " + Twine(s.k) + " elements of " + shapeText(a) + " but " +
                      Twine(kb) + " of " + shapeText(b));
  if (infer.element(op.getA()) != infer.element(op.getB()))
    return infer.fail("operands have different element types");
  if (failed(wantFormats(infer, op.getQuantizeAAttr(), op.getQuantizeBAttr())))
    return failure();
  if (op.getQuantizeA() && a.size() != 2)
    return infer.fail("quantizes " + shapeText(a) + "; expected two dimensions");
  SmallVector<int64_t> shape(a.drop_back(2));
  shape.append({s.m, s.n});
  if (failed(infer.pushMatmul(shape, infer.element(op.getA()), op.getDtypeAttr(),
                              op.getComputeAttr(), types)))
    return failure();
  if (op.getAddend() && op.getAddend().getType() != types.front())
    return infer.fail("adds " + shapeText(infer.shape(op.getAddend())) + " of another type to " +
                      shapeText(shape));
  return success();
}

LogicalResult MatmulOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const RefTensor &a = *in[0], &b = *in[1];
  MatmulSizes s = matmulSizes(a.shape, b.shape, getTransposeA(), getTransposeB());
  int64_t aRow = getTransposeA() ? 1 : s.k, aCol = getTransposeA() ? s.m : 1;
  int64_t bRow = getTransposeB() ? 1 : s.n, bCol = getTransposeB() ? s.k : 1;
  int64_t batches = out[0].size() / (s.m * s.n);
  for (int64_t batch = 0; batch < batches; ++batch) {
    const double *pa = a.data.data() + batch * s.m * s.k, *pb = b.data.data() + batch * s.k * s.n;
    double *pc = out[0].data.data() + batch * s.m * s.n;
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t l = 0; l < s.k; ++l) {
        double v = pa[i * aRow + l * aCol];
        for (int64_t j = 0; j < s.n; ++j)
          pc[i * s.n + j] += v * pb[l * bRow + j * bCol];
      }
  }
  if (in.size() > 2)
    for (int64_t i = 0; i < out[0].size(); ++i)
      out[0].data[i] += in[2]->data[i];
  return success();
}

int64_t MatmulOp::flops() {
  MatmulSizes s =
      matmulSizes(build::shapeOf(getA()), build::shapeOf(getB()), getTransposeA(), getTransposeB());
  return productOf({2, build::typeOf(getC()).getNumElements(), s.k});
}
OpClass MatmulOp::costClass() { return OpClass::gemm; }
Precision MatmulOp::precisionClass() {
  return getFullPrecision() || getCompute() ? Precision::Full : Precision::Matmul;
}
/// What is added has the type of the result.
bool MatmulOp::takesRounded(unsigned operand) {
  return precisionClass() == Precision::Matmul && (operand < 2 || !getDtype());
}
bool MatmulOp::yieldIn(Type format) {
  if (isSumFormat(format)) {
    setDtype(format);
    return true;
  }
  if (getAddend() || build::typeOf(getA()).getElementType() != format)
    return false;
  removeDtypeAttr();
  return true;
}
void MatmulOp::allowReducedReduction() { setReducedReduction(true); }
bool MatmulOp::multiplyIn(Type format) {
  setCompute(format);
  return true;
}
bool MatmulOp::paysToSkipRows() { return true; }
Type MatmulOp::multipliedIn(unsigned operand) { return formatOfFactor(operand, getCompute()); }
SmallVector<unsigned> MatmulOp::overwritableOperands(unsigned) {
  return getAddend() ? SmallVector<unsigned>{2} : SmallVector<unsigned>{};
}
OperandLayout MatmulOp::resultLayout(unsigned) { return operandLayout(0); }
OperandLayout MatmulOp::operandLayout(unsigned) {
  return {/*denseInner=*/1, /*mergedRows=*/false, /*apartRows=*/true, /*alignment=*/16};
}

RowUse MatmulOp::rowUse(unsigned operand) {
  if (build::typeOf(getC()).getRank() != 2)
    return RowUse::All; // the first dimension is one of a batch
  if (getTransposeA())
    return operand < 2 && !getTransposeB() ? RowUse::Sum : RowUse::All;
  return operand == 1 ? RowUse::All : RowUse::Each;
}

void MatmulOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  // With A = op(a), B = op(b): dA = G Bᵀ, dB = Aᵀ G, transposed back where the operand is stored
  // transposed.
  Location loc = getLoc();
  auto matmul = [&](Value x, bool tx, Value y, bool ty) {
    auto flag = [&](bool set) { return set ? b.getUnitAttr() : UnitAttr(); };
    return MatmulOp::create(b, loc, x, y, Value(), flag(tx), flag(ty), TypeAttr(), UnitAttr(),
                            getFullPrecisionAttr(), getComputeAttr());
  };
  bool ta = getTransposeA(), tb = getTransposeB();
  Value dc = build::cast(b, loc, g[0], build::typeOf(getA()).getElementType());
  grads[0] = ta ? matmul(getB(), tb, dc, true) : matmul(dc, false, getB(), !tb);
  grads[1] = tb ? matmul(dc, true, getA(), ta) : matmul(getA(), !ta, dc, false);
  if (getAddend())
    grads[2] = g[0];
}

namespace {
/// A transposition of the last two dimensions becomes a flag.
struct AbsorbTranspose : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  static Value swapped(Value v) {
    auto transpose = v.getDefiningOp<TransposeOp>();
    if (!transpose || isUnbound(v.getType()))
      return {};
    SmallVector<int64_t> order = transpose.getOrder();
    int64_t n = order.size();
    std::swap(order[n - 1], order[n - 2]);
    return llvm::equal(order, llvm::seq<int64_t>(0, n)) ? transpose.getX() : Value();
  }

  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    Value a = swapped(op.getA()), b = swapped(op.getB());
    if (!a && !b)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (a) {
        op.getAMutable().assign(a);
        op.setTransposeA(!op.getTransposeA());
      }
      if (b) {
        op.getBMutable().assign(b);
        op.setTransposeB(!op.getTransposeB());
      }
    });
    return success();
  }
};
} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AbsorbTranspose>(context);
}

//===-- embedding ---------------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferTypes(TypeInference &infer, Adaptor op,
                                      SmallVectorImpl<Type> &types) {
  if (failed(infer.wantInteger(op.getTokens(), "token ids")) ||
      failed(infer.wantWeight(op.getTable(), "table")) ||
      failed(infer.wantRank(op.getTable(), "table", 2)))
    return failure();
  const int64_t rows = infer.shape(op.getTable())[0];
  if (Attribute padding = op.getPaddingAttr();
      padding && (intValue(padding) < 0 || intValue(padding) >= rows))
    return infer.fail("padding is " + Twine(intValue(padding)) + "; expected an id in [0, " +
                      Twine(rows) + ")");
  SmallVector<int64_t> shape(infer.shape(op.getTokens()));
  shape.push_back(infer.shape(op.getTable())[1]);
  types.push_back(infer.tensor(shape, infer.element(op.getTable())));
  return success();
}

/// Whether a token id is a row of the table.
static bool isRow(double id, int64_t rows) { return id >= 0 && id < rows; }

/// Reports a token id that is not a row of the table, with its place.
static LogicalResult checkId(Operation *op, const RefTensor &tokens, int64_t t, int64_t rows) {
  double id = tokens.data[t];
  if (isRow(id, rows))
    return success();
  return op->emitOpError() << "token id " << static_cast<int64_t>(id) << " at position " << t
                           << " is not in [0, " << rows << ")";
}

LogicalResult EmbeddingOp::evaluate(ArrayRef<const RefTensor *> in,
                                    MutableArrayRef<RefTensor> out) {
  const int64_t d = in[1]->cols(), rows = in[1]->shape[0];
  const bool areGiven = isa<BlockArgument>(getTokens());
  for (int64_t t = 0; t < in[0]->size(); ++t) {
    const auto to = out[0].data.begin() + t * d;
    if (areGiven && failed(checkId(*this, *in[0], t, rows)))
      return failure();
    if (!isRow(in[0]->data[t], rows)) {
      std::fill(to, to + d, std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    const double *row = in[1]->data.data() + static_cast<int64_t>(in[0]->data[t]) * d;
    std::copy(row, row + d, to);
  }
  return success();
}

std::optional<IdRange> EmbeddingOp::idRange(unsigned operand) {
  return operand == 0 ? std::optional(IdRange{build::shapeOf(getTable())[0]}) : std::nullopt;
}
std::optional<IdRange> EmbeddingGradOp::idRange(unsigned operand) {
  return operand == 0 ? std::optional(IdRange{getRows()}) : std::nullopt;
}

int64_t EmbeddingOp::bytes() {
  return bytesOf(getTokens().getType()) + 2 * bytesOf(getX().getType());
}
OpClass EmbeddingOp::costClass() { return OpClass::gather_scatter; }
Precision EmbeddingOp::precisionClass() { return Precision::Follow; }
bool EmbeddingOp::takesRounded(unsigned) { return true; }

SmallVector<int64_t> EmbeddingOp::rowWiseShape() {
  return SmallVector<int64_t>(build::shapeOf(getX()));
}
std::optional<unsigned> EmbeddingOp::rowDimensions() { return rowWiseShape().size() - 1; }
RowForm EmbeddingOp::operandForm(unsigned operand) {
  return operand == 0 ? RowForm::Row : RowForm::Tile;
}
bool EmbeddingOp::needsOuterOperand(unsigned operand) { return operand == 1; }

RowValue gatherChecked(RowEmitter &e, unsigned operand, RowValue id, int64_t rows) {
  Type number = e.elementType(id);
  RowValue last = e.constant(static_cast<double>(rows - 1), number);
  RowValue within =
      e.binary(RowBinary::Min, e.binary(RowBinary::Max, id, e.constant(0.0, number)), last);
  RowValue row = e.gather(operand, within);
  Type element = e.elementType(row);
  const double none = isa<FloatType>(element)
                          ? std::numeric_limits<double>::quiet_NaN()
                          : -std::ldexp(1.0, int(element.getIntOrFloatBitWidth()) - 1);
  return e.select(e.compare(Predicate::eq, id, within), row, e.constant(none, element));
}

void EmbeddingOp::emitRows(RowEmitter &e, ArrayRef<RowValue> in, ArrayRef<unsigned> outer,
                           MutableArrayRef<RowValue> out) {
  out[0] = gatherChecked(e, outer[1], in[0], build::shapeOf(getTable())[0]);
}

void EmbeddingOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  const Location loc = getLoc();
  Value dx = build::cast(b, loc, g[0], b.getF32Type());
  if (Attribute padding = getPaddingAttr()) {
    const RankedTensorType type = build::typeOf(dx), ids = build::typeOf(getTokens());
    Value id = build::constant(b, loc, ids, static_cast<double>(intValue(padding)));
    Value is = CompareOp::create(b, loc, getTokens(), id, Predicate::eq);
    SmallVector<int64_t> column(ids.getShape());
    column.push_back(1);
    is = build::broadcast(b, loc, build::reshape(b, loc, is, column), type.getShape());
    dx = SelectOp::create(b, loc, is, build::constant(b, loc, type, 0.0), dx);
  }
  Value grad = EmbeddingGradOp::create(b, loc, getTokens(), dx,
                                       b.getI64IntegerAttr(build::shapeOf(getTable())[0]));
  grads[1] = build::cast(b, loc, grad, build::typeOf(getTable()).getElementType());
}

LogicalResult EmbeddingGradOp::inferTypes(TypeInference &infer, Adaptor op,
                                          SmallVectorImpl<Type> &types) {
  if (failed(infer.wantInteger(op.getTokens(), "token ids")) ||
      failed(infer.wantFloat(op.getDx(), "gradient")))
    return failure();
  SmallVector<int64_t> want(infer.shape(op.getTokens()));
  want.push_back(infer.shape(op.getDx()).empty() ? 1 : infer.shape(op.getDx()).back());
  if (failed(infer.wantShape(op.getDx(), "gradient", want)))
    return failure();
  if (!infer.element(op.getDx()).isF32())
    return infer.fail("gradient is not f32, in which it is summed");
  if (op.getRows() < 1)
    return infer.fail("table has " + Twine(op.getRows()) + " rows; expected at least 1");
  types.push_back(infer.tensor({op.getRows(), want.back()}, infer.f32()));
  return success();
}

LogicalResult EmbeddingGradOp::evaluate(ArrayRef<const RefTensor *> in,
                                        MutableArrayRef<RefTensor> out) {
  int64_t d = in[1]->cols();
  for (int64_t t = 0; t < in[0]->size(); ++t) {
    if (failed(checkId(*this, *in[0], t, getRows())))
      return failure();
    double *row = out[0].data.data() + static_cast<int64_t>(in[0]->data[t]) * d;
    for (int64_t i = 0; i < d; ++i)
      row[i] += in[1]->data[t * d + i];
  }
  return success();
}

int64_t EmbeddingGradOp::bytes() {
  return bytesOf(getTokens().getType()) + bytesOf(getDx().getType()) + bytesOf(getGrad().getType());
}
OpClass EmbeddingGradOp::costClass() { return OpClass::gather_scatter; }
Precision EmbeddingGradOp::precisionClass() { return Precision::Full; }
bool EmbeddingGradOp::takesRounded(unsigned) { return false; }

} // namespace hydra
