// The elementary functions against float64, over all kinds of arguments.
#include "dialects/hydra/RowMath.h"
#include "test/unit/codegen/KernelRunner.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <bit>
#include <cmath>

using namespace hydra;
using namespace hydra::test;

namespace {

struct FunctionCase {
  const char *name;
  RowUnary f;
  double (*exact)(double);
  double ulps;
};

double sigmoidOf(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

/// Of magnitudes, and nothing below the normal range of f32.
double powerOfTwo(double x) {
  if (x == 0.0 || !std::isfinite(x))
    return std::abs(x);
  return std::abs(x) < 0x1p-126 ? 0.0 : std::ldexp(1.0, std::ilogb(x));
}

/// One function of `n` numbers.
RowProgram unaryProgram(mlir::MLIRContext &context, RowUnary f, int64_t n) {
  RowRecorder recorder(&context, {{n}, {}}, {{{n}, RowType::F32, RowForm::Tile}});
  return recorder.finish({recorder.unary(f, recorder.input(0))}, {{RowForm::Tile, RowType::F32}});
}

class VectorMathTest : public testing::TestWithParam<FunctionCase> {
protected:
  VectorMathTest() { context.disableMultithreading(); }

  RowProgram program(int64_t n) { return unaryProgram(context, GetParam().f, n); }

  mlir::MLIRContext context;
};

/// The distance between neighbouring floats at x; of denormals below the normal range.
double ulpAt(double x) {
  int exponent;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST_P(VectorMathTest, StaysWithinItsUlps) {
  Numbers x;
  for (uint64_t u = 0; u < (uint64_t(1) << 32); u += 2039) { // every sign, exponent, nan
    float f = std::bit_cast<float>(static_cast<uint32_t>(u));
    if (!std::isnan(f))
      x.push_back(f);
  }
  for (float f : {0.0f, -0.0f, 1.0f, -1.0f, 0.625f, 88.72283f, 88.72284f, -87.33655f, -103.972f,
                  -104.5f, 0x1p-126f, 0x1p-149f, 3.4028234e38f})
    x.push_back(f);
  Numbers y = runKernel(program(x.size()), {x})[0];
  double worst = 0.0, where = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    double exact = GetParam().exact(x[i]);
    auto nearest = static_cast<float>(exact);
    if (std::isnan(nearest) || std::isinf(nearest)) {
      EXPECT_TRUE(std::isnan(nearest) ? std::isnan(y[i]) : y[i] == nearest)
          << GetParam().name << "(" << x[i] << ") = " << y[i] << ", expected " << nearest;
      continue;
    }
    double error = std::abs(y[i] - exact) / ulpAt(exact);
    if (!(error <= worst)) {
      worst = error;
      where = x[i];
    }
  }
  RecordProperty("worst_ulps", std::to_string(worst));
  std::printf("%s: %.3f ulp at %.9g\n", GetParam().name, worst, where);
  EXPECT_LE(worst, GetParam().ulps) << "at " << where;
}

TEST_P(VectorMathTest, KeepsNansAndLimits) {
  double inf = std::numeric_limits<double>::infinity();
  Numbers x = {std::nan(""), inf, -inf};
  Numbers y = runKernel(program(3), {x})[0];
  EXPECT_TRUE(std::isnan(y[0]));
  for (int i = 1; i < 3; ++i) {
    double exact = GetParam().exact(x[i]);
    EXPECT_TRUE(std::isnan(exact) ? std::isnan(y[i]) : y[i] == exact) << x[i] << ": " << y[i];
  }
}

/// Angles; of large ones an absolute error counts. Every exponent is among them.
TEST(SinAndCos, OfAngles) {
  mlir::MLIRContext context;
  Numbers x = {3.4028234e38f, -3.4028234e38f, 0x1p24f, 0x1p24f - 1, 0x1p25f, 16367173.0f * 0x1p72f};
  for (uint64_t u = 0; u < (uint64_t(1) << 32); u += 10007)
    if (const float f = std::bit_cast<float>(static_cast<uint32_t>(u)); std::isfinite(f))
      x.push_back(f);
  for (int i = -200000; i <= 200000; ++i)
    x.push_back(static_cast<float>(i) * 0.0371f);
  for (const auto &[f, exact] : {std::pair(
                                     RowUnary::Sin, +[](double v) { return std::sin(v); }),
                                 std::pair(RowUnary::Cos, +[](double v) { return std::cos(v); })}) {
    const Numbers y = runKernel(unaryProgram(context, f, x.size()), {x})[0];
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], exact(x[i]), 6e-8) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, VectorMathTest,
    testing::Values(
        FunctionCase{"exp", RowUnary::Exp, [](double x) { return std::exp(x); }, 1.0},
        FunctionCase{"log", RowUnary::Log, [](double x) { return std::log(x); }, 0.8},
        FunctionCase{"tanh", RowUnary::Tanh, [](double x) { return std::tanh(x); }, 1.3},
        FunctionCase{"erf", RowUnary::Erf, [](double x) { return std::erf(x); }, 1.1},
        FunctionCase{"sigmoid", RowUnary::Sigmoid, sigmoidOf, 2.1},
        FunctionCase{"sqrt", RowUnary::Sqrt, [](double x) { return std::sqrt(x); }, 0.5},
        FunctionCase{"rsqrt", RowUnary::Rsqrt, [](double x) { return 1.0 / std::sqrt(x); }, 1.5},
        FunctionCase{"power_of_two", RowUnary::PowerOfTwo, powerOfTwo, 0.0},
        FunctionCase{"neg", RowUnary::Neg, [](double x) { return -x; }, 0.0}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
