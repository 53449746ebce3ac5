// The derivative of every operation against central differences.
#include "test/support/Derivative.h"
#include "test/support/OpCases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace hydra;
using namespace hydra::test;

TEST(NumericDerivative, IsExactToTenDigitsWhereItIsSmooth) {
  for (const double x : {-1.0, 0.3, 2.0}) {
    const auto found = numericDerivative([&](double t) { return std::exp(std::sin(x + t)); });
    ASSERT_TRUE(found);
    EXPECT_NEAR(*found, std::exp(std::sin(x)) * std::cos(x), 1e-11);
  }
}

TEST(NumericDerivative, TakesASmallerStepWhereCurvatureIsHigh) {
  const auto found = numericDerivative([](double t) { return std::sin(300.0 * t); });
  ASSERT_TRUE(found);
  EXPECT_NEAR(*found, 300.0, 1e-5);
}

TEST(NumericDerivative, RefusesKinksAndJumps) {
  EXPECT_FALSE(numericDerivative([](double t) { return std::abs(t); }));
  EXPECT_FALSE(numericDerivative([](double t) { return std::abs(t - 1e-5); }));
  EXPECT_FALSE(numericDerivative([](double t) { return t < 0.0 ? 0.0 : 1e-3; }));
}

namespace {

class Gradient : public testing::TestWithParam<OpCase> {};

std::string nameOf(const testing::TestParamInfo<OpCase> &info) { return info.param.name; }

} // namespace

TEST_P(Gradient, AgreesWithCentralDifferences) {
  unsigned checked = 0, skipped = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const SmallModel model = GetParam().make(random);
    SmallProgram program(model);
    ASSERT_EQ(program.error, "");
    const TensorMap values = model.values(seed);
    const TensorMap gradients = program.differentiate(values);
    ASSERT_EQ(program.error, "");
    const DerivativeReport report =
        checkGradients(program.forward(), values, gradients, seed,
                       {.directions = 2, .elements = 10, .tolerance = 1e-8});
    EXPECT_EQ(report.failures, "") << model.text();
    checked += report.checked;
    skipped += report.skipped;
  }
  EXPECT_LE(skipped * 20, checked) << "too many derivatives were beside a kink";
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(opCases()), nameOf);

TEST(GradientCases, CoverEveryDifferentiableOperation) {
  Compiler compiler;
  llvm::StringSet<> found;
  Random random(1);
  for (const OpCase &c : opCases()) {
    auto module = compiler.parse(c.make(random).text());
    ASSERT_TRUE(module) << c.name;
    module->walk([&](mlir::Operation *op) { found.insert(op->getName().getStringRef()); });
  }
  for (const mlir::RegisteredOperationName op :
       compiler.context.getRegisteredOperationsByDialect("hydra"))
    if (op.hasInterface<DifferentiableOpInterface>() && op.getStringRef() != "hydra.detach" &&
        !op.hasInterface<CollectiveOpInterface>()) // PartitionTest
      EXPECT_TRUE(found.contains(op.getStringRef())) << op.getStringRef().str();
}

namespace {

/// Gradients of a model at given values.
TensorMap gradientsAt(const SmallModel &model, const TensorMap &values) {
  SmallProgram program(model);
  EXPECT_EQ(program.error, "");
  return program.error.empty() ? program.differentiate(values) : TensorMap();
}

} // namespace

TEST(GradientOfTies, GoesToTheFirstOperandOfMaxAndMin) {
  for (const char *op : {"max", "min"}) {
    SmallModel model;
    model.parameters = {{"a", {3}}, {"b", {3}}};
    model.resultShape = {3};
    model.code = std::string("    %y = hydra.") + op + " %a, %b\n";
    TensorMap values = model.values(1);
    values["b"] = values["a"];
    const TensorMap gradients = gradientsAt(model, values);
    EXPECT_TRUE(sameBits(gradients.lookup("grad.a"), values["weight"])) << op;
    EXPECT_TRUE(sameBits(gradients.lookup("grad.b"), RefTensor(llvm::ArrayRef<int64_t>{3}))) << op;
  }
}

TEST(GradientOfTies, IsSharedAmongTheLargestOfReduceMax) {
  SmallModel model;
  model.parameters = {{"x", {2, 4}}};
  model.resultShape = {2};
  model.code = "    %y = hydra.reduce_max %x axes = [1]\n";
  TensorMap values = model.values(1);
  values["x"].data = {1, 5, 5, 2, /**/ 7, 7, 7, 7};
  values["weight"].data = {3, -8};
  EXPECT_EQ(gradientsAt(model, values).lookup("grad.x").data,
            (std::vector<double>{0, 1.5, 1.5, 0, -2, -2, -2, -2}));
}

TEST(GradientOfTies, OfAParameterUsedTwiceIsTheSum) {
  SmallModel model;
  model.parameters = {{"x", {5}}};
  model.resultShape = {5};
  model.code = "    %again = hydra.use @x\n    %y = hydra.mul %x, %again\n";
  const TensorMap values = model.values(3), gradients = gradientsAt(model, values);
  ASSERT_TRUE(gradients.contains("grad.x"));
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_DOUBLE_EQ(gradients.lookup("grad.x").data[i],
                     2.0 * values.lookup("x").data[i] * values.lookup("weight").data[i]);
}

TEST(GradientOfDetached, IsThatOfAConstant) {
  SmallModel model;
  model.parameters = {{"x", {5}}};
  model.resultShape = {5};
  model.code = "    %held = hydra.detach %x\n    %y = hydra.mul %x, %held\n";
  const TensorMap values = model.values(3), gradients = gradientsAt(model, values);
  ASSERT_TRUE(gradients.contains("grad.x"));
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_DOUBLE_EQ(gradients.lookup("grad.x").data[i],
                     values.lookup("x").data[i] * values.lookup("weight").data[i]);
}

TEST(GradientOfEmbedding, LeavesOutThePaddingOfALookup) {
  for (const int64_t padding : {0, 2, 3}) {
    SmallModel model;
    model.parameters = {{"table", {4, 3}}};
    model.ids = {{"tokens", {2, 5}, 4}};
    model.resultShape = {2, 5, 3};
    model.code = "    %y = hydra.embedding %tokens, %table\n";
    TensorMap values = model.values(5);
    values["tokens"].data = {0, 2, 2, 1, 0, /**/ 3, 2, 1, 1, 0};
    TensorMap expected = gradientsAt(model, values);
    model.code =
        "    %y = hydra.embedding %tokens, %table padding = " + std::to_string(padding) + "\n";
    const TensorMap gradients = gradientsAt(model, values);
    for (const char *same : {"loss", "result"})
      EXPECT_TRUE(sameBits(gradients.lookup(same), expected[same])) << same;
    double *row = expected["grad.table"].data.data() + padding * 3;
    ASSERT_NE(*row, 0.0);
    std::fill(row, row + 3, 0.0);
    EXPECT_TRUE(sameBits(gradients.lookup("grad.table"), expected["grad.table"])) << padding;
  }
}

TEST(GradientOfEmbedding, KeepsThatOfATiedHead) {
  SmallModel model; // scores of what was looked up in the same table
  model.parameters = {{"table", {4, 3}}};
  model.ids = {{"tokens", {5}, 4}};
  model.resultShape = {5, 4};
  const auto code = [](const std::string &attribute, const char *through) {
    return "    %x = hydra.embedding %tokens, %table" + attribute + "\n" + through +
           "    %y = hydra.linear %in, %table\n";
  };
  model.code = code(" padding = 1", "    %in = hydra.mul %x, %x\n");
  TensorMap values = model.values(5);
  values["tokens"].data = {1, 2, 1, 1, 0};
  const RefTensor found = gradientsAt(model, values).lookup("grad.table");
  // Of the head alone, and of both.
  model.code = code("", "    %held = hydra.detach %x\n    %in = hydra.mul %held, %held\n");
  const RefTensor head = gradientsAt(model, values).lookup("grad.table");
  model.code = code("", "    %in = hydra.mul %x, %x\n");
  const RefTensor both = gradientsAt(model, values).lookup("grad.table");
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_DOUBLE_EQ(found.data[i], (i / 3 == 1 ? head : both).data[i]) << i;
}

TEST(GradientOfIntegers, StopsAtACastToWholeNumbers) {
  SmallModel model;
  model.parameters = {{"x", {5}, -3.0, 3.0}};
  model.resultShape = {5};
  model.code = "    %whole = hydra.cast %x to = i32\n    %y = hydra.cast %whole to = f32\n";
  EXPECT_TRUE(sameBits(gradientsAt(model, model.values(1)).lookup("grad.x"),
                       RefTensor(llvm::ArrayRef<int64_t>{5})));
}
