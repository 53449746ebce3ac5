// Discrete Fourier transforms of real numbers.
#include "dialects/hydra/Build.h"
#include "dialects/hydra/Reference.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace hydra {

//===-- What both have in common ------------------------------------------------------------===//

/// Numbers of a row, from its spectrum [..., n / 2 + 1, 2].
static int64_t lengthOf(ArrayRef<int64_t> spectrum) {
  return 2 * (spectrum.drop_back().back() - 1);
}

/// An FFT of real numbers takes about half of the 5 n log2 n of a complex one.
static int64_t flopsOfRows(ArrayRef<int64_t> rows) {
  const double n = static_cast<double>(rows.back());
  const double flops = 2.5 * n * std::log2(n) * RefTensor::elements(rows.drop_back());
  constexpr double kMost = 9.0e18;
  return static_cast<int64_t>(std::min(flops, kMost));
}

static LogicalResult wantRows(TypeInference &infer, Value v, StringRef what, int64_t leastRank) {
  if (failed(infer.wantFloat(v, what)))
    return failure();
  if (!infer.element(v).isF32())
    return infer.wantExact(v, what, infer.shape(v));
  if (infer.type(v).getRank() < leastRank)
    return infer.fail(what + " is " + shapeText(infer.shape(v)) + "; expected at least " +
                      Twine(leastRank) + " dimension" + (leastRank > 1 ? "s" : ""));
  return success();
}

#define TRANSFORM_OP(Op, rows)                                                                     \
  OpClass Op::costClass() { return OpClass::fft; }                                                 \
  Precision Op::precisionClass() { return Precision::Exact; }                                      \
  bool Op::takesRounded(unsigned) { return false; }                                                \
  int64_t Op::flops() { return flopsOfRows(build::shapeOf(rows)); }
TRANSFORM_OP(RfftOp, getX())
TRANSFORM_OP(IrfftOp, getX())
#undef TRANSFORM_OP

namespace {

/// cos and sin of 2 pi j / n for all j below n.
struct Circle {
  std::vector<double> cos, sin;

  explicit Circle(int64_t n) : cos(n), sin(n) {
    for (int64_t j = 0; j < n; ++j) {
      const double angle = 2.0 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
      cos[j] = std::cos(angle);
      sin[j] = std::sin(angle);
    }
  }
};

/// Factors of the numbers of a spectrum.
struct Factors {
  double inside = 1.0; ///< of both parts
  double ends = 1.0;   ///< of the real parts of the first and the last; their imaginary parts: 0
};

} // namespace

/// A spectrum times factors that depend on where a number stands in it. Imaginary parts of its ends
/// are 0 whatever they were: 0 times what is not finite would not be.
static Value scaleSpectrum(OpBuilder &b, Location loc, Value spectrum, Factors factors) {
  ArrayRef<int64_t> shape = build::shapeOf(spectrum);
  const SmallVector<int64_t> one(shape.take_back(2));
  auto number = [&](int64_t axis) -> Value {
    return IotaOp::create(b, loc, RankedTensorType::get(one, b.getI32Type()),
                          b.getI64ArrayAttr(one), b.getI64IntegerAttr(axis), TypeAttr());
  };
  auto isAt = [&](Value numbers, int64_t place) {
    Value wanted = build::constant(b, loc, numbers.getType(), static_cast<double>(place));
    Value truth = CompareOp::create(b, loc, numbers, wanted, Predicate::eq);
    return build::cast(b, loc, truth, b.getF32Type());
  };
  Value places = number(0);
  Value isEnd = AddOp::create(b, loc, isAt(places, 0), isAt(places, one[0] - 1));
  Value isReal = isAt(number(1), 0);
  // inside + isEnd (ends isReal - inside)
  Value atEnds = AddOp::create(b, loc, build::scale(b, loc, isReal, factors.ends),
                               build::constant(b, loc, isReal.getType(), -factors.inside));
  Value weights = AddOp::create(b, loc, MulOp::create(b, loc, isEnd, atEnds),
                                build::constant(b, loc, isEnd.getType(), factors.inside));
  Value everywhere = build::broadcast(b, loc, weights, shape);
  Value zero = build::constant(b, loc, everywhere.getType(), 0.0);
  Value isNothing = CompareOp::create(b, loc, everywhere, zero, Predicate::eq);
  return SelectOp::create(b, loc, isNothing, zero, MulOp::create(b, loc, spectrum, everywhere));
}

//===-- rfft --------------------------------------------------------------------------------===//

LogicalResult RfftOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (failed(wantRows(infer, op.getX(), "operand", 1)))
    return failure();
  SmallVector<int64_t> shape(infer.shape(op.getX()));
  if (shape.back() % 2 != 0)
    return infer.fail("rows have " + Twine(shape.back()) + " numbers; expected an even number");
  shape.back() = shape.back() / 2 + 1;
  shape.push_back(2);
  if (failed(infer.wantPossible(shape, "the result,")))
    return failure();
  types.push_back(infer.tensor(shape, infer.f32()));
  return success();
}

LogicalResult RfftOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const int64_t n = in[0]->cols(), width = n / 2 + 1;
  const Circle circle(n);
  for (int64_t row = 0; row < in[0]->rows(); ++row) {
    const double *x = in[0]->data.data() + row * n;
    double *y = out[0].data.data() + 2 * row * width;
    for (int64_t k = 0; k < width; ++k)
      for (int64_t t = 0, j = 0; t < n; ++t, j = (j + k) % n) {
        y[2 * k] += x[t] * circle.cos[j];
        if (k > 0 && k < width - 1) // the sine of pi has a rest in floating point
          y[2 * k + 1] -= x[t] * circle.sin[j];
      }
  }
  return success();
}

/// The transpose: numbers inside of a spectrum count once here, and with their conjugates twice in
/// `hydra.irfft`.
void RfftOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Value halved = scaleSpectrum(b, getLoc(), g[0], {.inside = 0.5, .ends = 1.0});
  grads[0] = IrfftOp::create(b, getLoc(), halved, b.getUnitAttr());
}

//===-- irfft -------------------------------------------------------------------------------===//

LogicalResult IrfftOp::inferTypes(TypeInference &infer, Adaptor op, SmallVectorImpl<Type> &types) {
  if (failed(wantRows(infer, op.getY(), "operand", 2)))
    return failure();
  ArrayRef<int64_t> spectrum = infer.shape(op.getY());
  if (spectrum.back() != 2 || spectrum.drop_back().back() < 2)
    return infer.fail("operand is " + shapeText(spectrum) +
                      "; expected [..., n / 2 + 1, 2], of rows of n numbers");
  SmallVector<int64_t> shape(spectrum.drop_back());
  shape.back() = lengthOf(spectrum);
  types.push_back(infer.tensor(shape, infer.f32()));
  return success();
}

LogicalResult IrfftOp::evaluate(ArrayRef<const RefTensor *> in, MutableArrayRef<RefTensor> out) {
  const int64_t n = out[0].cols(), width = n / 2 + 1;
  const Circle circle(n);
  for (int64_t row = 0; row < out[0].rows(); ++row) {
    const double *y = in[0]->data.data() + 2 * row * width;
    double *x = out[0].data.data() + row * n;
    for (int64_t t = 0; t < n; ++t) {
      x[t] = y[0] + (t % 2 == 0 ? 1.0 : -1.0) * y[2 * (width - 1)];
      for (int64_t k = 1, j = t; k < width - 1; ++k, j = (j + t) % n)
        x[t] += 2.0 * (y[2 * k] * circle.cos[j] - y[2 * k + 1] * circle.sin[j]);
    }
  }
  return success();
}

void IrfftOp::vjp(OpBuilder &b, ValueRange g, MutableArrayRef<Value> grads) {
  Value spectrum = RfftOp::create(b, getLoc(), g[0]);
  grads[0] = scaleSpectrum(b, getLoc(), spectrum, {.inside = 2.0, .ends = 1.0});
}

bool IrfftOp::needsRowWiseForm() { return !getRealEnds(); }

/// The same of a spectrum whose ends are real.
SmallVector<Value> IrfftOp::buildRowWiseForm(OpBuilder &b) {
  Value real = scaleSpectrum(b, getLoc(), getY(), {.inside = 1.0, .ends = 1.0});
  return {IrfftOp::create(b, getLoc(), real, b.getUnitAttr())};
}

} // namespace hydra
