// CS336-ref of models.md section 11 through the training pipeline and the oracle: loss, gradients
// and 20 steps, to the printed digits.
#include "test/support/Golden.h"
#include "test/support/Compile.h"
#include "test/support/GoldenFill.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace hydra;
using namespace hydra::test;

namespace {

constexpr int64_t kBatch = 2, kSeq = 32, kVocabulary = 97;

class Cs336Golden : public testing::Test {
protected:
  /// Compiles `models/cs336.mlir` up to `mode`; the program stays `loss`.
  void compile(Mode mode) {
    module = compiler.parseFile(sourcePath("models/cs336.mlir"));
    ASSERT_TRUE(module) << compiler.takeDiagnostics();
    BindingOptions binding;
    binding.preset = "tiny";
    binding.settings = {"beta2=0.95", "wd=0.0"};
    binding.batch = kBatch;
    binding.seq = kSeq;
    ASSERT_TRUE(compiler.run(*module, [&](mlir::OpPassManager &passes) {
      buildForwardPipeline(passes, binding);
      buildTrainingPipeline(passes, mode, {"loss"}, /*accumulation=*/1,
                            /*clip=*/false);
    })) << compiler.takeDiagnostics();
  }

  /// Section 11.2: tok_emb (0, 1); norms (1, 0.1); matrices (0, sqrt(3 / fan-in)).
  TensorMap values() {
    TensorMap values;
    uint64_t ordinal = 0;
    for (ParamOp param : modelOf(*module).getBody().getOps<ParamOp>()) {
      const llvm::StringRef name = param.getSymName();
      const auto shape = param.getBoundType().getShape();
      RefTensor &tensor = values[name] = RefTensor(shape);
      if (name == "tok_emb")
        fillGolden(tensor.data, 1, ordinal++, 0.0, 1.0);
      else if (shape.size() == 1)
        fillGolden(tensor.data, 1, ordinal++, 1.0, 0.1);
      else
        fillGolden(tensor.data, 1, ordinal++, 0.0, std::sqrt(3.0 / shape[1]));
    }
    const GoldenTokens golden = goldenTokens(kBatch, kSeq, kVocabulary);
    values["tokens"] = values["labels"] = RefTensor({kBatch, kSeq});
    values["tokens"].data.assign(golden.tokens.begin(), golden.tokens.end());
    values["labels"].data.assign(golden.labels.begin(), golden.labels.end());
    return values;
  }

  TensorMap run(const TensorMap &inputs) {
    llvm::FailureOr<TensorMap> results = interpret(programOf(*module), inputs);
    EXPECT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    return succeeded(results) ? *results : TensorMap();
  }

  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace

TEST_F(Cs336Golden, LossAndEveryGradient) {
  compile(Mode::Grad);
  if (HasFatalFailure())
    return;
  const TensorMap results = run(values());
  ASSERT_TRUE(results.contains("loss"));
  EXPECT_NEAR(results.lookup("loss").data[0], cs336::kLoss, kGoldenLossTolerance);
  double all = 0.0;
  for (const GoldenGradient &golden : cs336::kGradients) {
    SCOPED_TRACE(golden.name);
    const RefTensor gradient = results.lookup(std::string("grad.") + golden.name);
    ASSERT_EQ(gradient.size(), golden.elements);
    double square = 0.0;
    for (const double v : gradient.data)
      square += v * v;
    all += square;
    EXPECT_NEAR(std::sqrt(square), golden.norm, kGoldenGradientTolerance * golden.norm);
    EXPECT_NEAR(gradient.data[0], golden.first, kGoldenGradientTolerance * std::abs(golden.first));
  }
  EXPECT_NEAR(std::sqrt(all), cs336::kGradientNorm,
              kGoldenGradientTolerance * cs336::kGradientNorm);
  size_t gradients = 0;
  for (auto &[name, tensor] : results)
    gradients += name.starts_with("grad.");
  EXPECT_EQ(gradients, std::size(cs336::kGradients));
}

TEST_F(Cs336Golden, TwentySteps) {
  compile(Mode::Train);
  if (HasFatalFailure())
    return;
  TensorMap state = values();
  for (StateOp moment : modelOf(*module).getBody().getOps<StateOp>())
    state[moment.getSymName()] = RefTensor(moment.getBoundType().getShape());
  state["lr"] = scalar(1e-3);
  const GoldenLoss *next = std::begin(cs336::kTrajectory);
  for (int64_t updates = 0; next != std::end(cs336::kTrajectory); ++updates) {
    state["step"] = scalar(static_cast<double>(updates + 1));
    TensorMap results = run(state);
    ASSERT_TRUE(results.contains("loss"));
    if (updates == next->updates)
      EXPECT_NEAR(results["loss"].data[0], next++->loss, kGoldenTrajectoryTolerance)
          << "after " << updates << " updates";
    for (auto &[name, tensor] : results)
      if (name != "loss")
        state[name] = std::move(tensor);
  }
}
