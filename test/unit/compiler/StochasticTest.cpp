// Stochastic arithmetic: what rounding may move is moved by about as much, and nothing else is.
#include "test/support/SmallModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace hydra::test {

namespace {

/// The largest difference between the result and each of so many samples, and between the samples.
struct Spread {
  double toExact = 0.0, among = 0.0;
};

Spread spreadOf(const SmallModel &model, double *largest = nullptr) {
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module = compiler.parse(model.text());
  EXPECT_TRUE(module && compiler.run(*module, bindPass({}))) << compiler.takeDiagnostics();
  TensorMap values = model.values(3);
  for (auto &[name, tensor] : values)
    roundTo(tensor, mlir::Float32Type::get(&compiler.context));
  const auto evaluate = [&](uint64_t perturb) {
    llvm::FailureOr<TensorMap> results =
        interpret(programOf(*module), values, {.round = perturb != 0, .perturb = perturb});
    EXPECT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    return results->lookup("result");
  };
  const RefTensor exact = evaluate(0);
  std::vector<RefTensor> samples;
  for (uint64_t sample = 1; sample <= 4; ++sample)
    samples.push_back(evaluate(sample));
  Spread spread;
  for (const RefTensor &sample : samples)
    for (int64_t i = 0; i < exact.size(); ++i) {
      spread.toExact = std::max(spread.toExact, std::abs(sample.data[i] - exact.data[i]));
      spread.among = std::max(spread.among, std::abs(sample.data[i] - samples[0].data[i]));
    }
  if (largest)
    for (const double v : exact.data)
      *largest = std::max(*largest, std::abs(v));
  return spread;
}

SmallModel modelOf(const std::string &code, std::vector<int64_t> resultShape) {
  SmallModel m;
  m.parameters = {{"x", {8, 16}}, {"a", {8, 16}}};
  m.resultShape = std::move(resultShape);
  m.code = code;
  return m;
}

} // namespace

TEST(StochasticArithmetic, MovesWhatIsRounded) {
  double largest = 0.0;
  const Spread spread = spreadOf(modelOf("    %y = hydra.mul %x, %a\n", {8, 16}), &largest);
  EXPECT_GT(spread.among, 0x1p-26 * largest);
  EXPECT_LT(spread.toExact, 0x1p-21 * largest);
}

TEST(StochasticArithmetic, ShowsWhatCancels) {
  // The sum of a softmax is 1 but for rounding; what is left of it has no digit.
  const Spread spread = spreadOf(modelOf(R"(
    %p = hydra.softmax %x
    %s = hydra.sum %p axes = [1] keep
    %one = hydra.constant value = 1.0
    %y = hydra.sub %s, %one
)",
                                         {8, 1}));
  EXPECT_GT(spread.toExact, 1e-9);
  EXPECT_LT(spread.toExact, 1e-6);
  // Nor has that of large numbers whose sum is small.
  const Spread sums = spreadOf(modelOf(R"(
    %n = hydra.neg %x
    %both = hydra.concat %x, %n axis = 1
    %y = hydra.sum %both axes = [1]
)",
                                       {8}));
  EXPECT_GT(sums.toExact, 1e-9);
}

TEST(StochasticArithmetic, LeavesWhatIsMovedChosenOrWhole) {
  const Spread moved = spreadOf(modelOf(R"(
    %t = hydra.transpose %x order = [1, 0]
    %r = hydra.reshape %t shape = [4, 32]
    %s = hydra.slice %r axis = 1 start = 3 size = 7
    %m = hydra.max %s, %s
    %y = hydra.neg %m
)",
                                        {4, 7}));
  EXPECT_EQ(moved.toExact, 0.0);
  // Ranks by comparison: ties stay ties.
  const Spread whole = spreadOf(modelOf(R"(
    %i = hydra.iota shape = [8, 16] axis = 1 dtype = f32
    %two = hydra.constant value = 2.0
    %d = hydra.mul %i, %two
    %t = hydra.add %d, %d
    %c = hydra.sum %t axes = [1] keep
    %e = hydra.compare %t, %c is = "lt"
    %y = hydra.select %e, %t, %c
)",
                                        {8, 16}));
  EXPECT_EQ(whole.toExact, 0.0);
}

} // namespace hydra::test
