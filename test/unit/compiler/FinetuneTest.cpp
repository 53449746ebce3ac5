// Frozen parameters and adapters: what is trained has the gradients that it had, or those that
// differences confirm.
#include "test/support/Compile.h"
#include "test/support/Derivative.h"
#include "test/support/Random.h"
#include "test/support/RandomProgram.h"

#include "mlir/Transforms/Passes.h"
#include <gtest/gtest.h>

using namespace hydra;
using namespace hydra::test;
using mlir::ModuleOp;
using mlir::OwningOpRef;

namespace {

constexpr uint64_t kPrograms = 120;

class Finetune : public testing::Test {
protected:
  /// A model, bound and unrolled.
  OwningOpRef<ModuleOp> bound(llvm::StringRef text, const BindingOptions &binding) {
    OwningOpRef<ModuleOp> module = compiler.parse(text);
    EXPECT_TRUE(module) << compiler.takeDiagnostics();
    if (module)
      EXPECT_TRUE(compiler.run(*module, [&](mlir::OpPassManager &passes) {
        passes.addPass(bindPass(binding));
        passes.addPass(createUnrollLayers());
      })) << compiler.takeDiagnostics();
    return module;
  }

  void pass(ModuleOp module, std::unique_ptr<mlir::Pass> p) {
    const std::string name = p->getArgument().str();
    ASSERT_TRUE(compiler.run(module, std::move(p))) << name << ": " << compiler.takeDiagnostics();
  }

  TensorMap results(ModuleOp module, const TensorMap &values) {
    llvm::FailureOr<TensorMap> found = interpret(programOf(module), values);
    EXPECT_TRUE(succeeded(found)) << compiler.takeDiagnostics();
    return succeeded(found) ? std::move(*found) : TensorMap();
  }

  Compiler compiler;
};

std::unique_ptr<mlir::Pass> loraPass(int64_t rank, double alpha,
                                     const std::vector<std::string> &targets) {
  LoraOptions options;
  options.rank = rank;
  options.alpha = alpha;
  options.targets.assign(targets.begin(), targets.end());
  return createLora(options);
}

/// Matrices that nothing reads but linear layers, as their weight, and those of experts.
std::vector<std::string> weightsOfLinearLayers(ModelOp model) {
  std::vector<std::string> names;
  for (ParamOp param : model.getBody().getOps<ParamOp>()) {
    const int64_t rank = param.getBoundType().getRank();
    bool used = false, other = rank != 2 && rank != 3;
    model.walk([&](UseOp use) {
      if (use.lookup() != param)
        return;
      for (mlir::OpOperand &operand : use->getUses()) {
        used = true;
        other |=
            !isa<LinearOp, GroupedLinearOp>(operand.getOwner()) || operand.getOperandNumber() != 1;
      }
    });
    if (used && !other)
      names.push_back(param.getSymName().str());
  }
  return names;
}

} // namespace

TEST_F(Finetune, RandomFreezingChangesNoGradientOfWhatIsTrained) {
  unsigned frozen = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    const BoundText source = randomProgram(seed).layered;
    OwningOpRef<ModuleOp> all = bound(source.text, source.binding);
    ASSERT_TRUE(all && !HasFailure());
    Random random(seed);
    FreezeOptions options;
    std::vector<std::string> trained;
    for (ParamOp param : modelOf(*all).getBody().getOps<ParamOp>()) {
      if (param.getFrozen())
        continue;
      if (random.chance(0.5))
        options.patterns.push_back(param.getSymName().str());
      else
        trained.push_back(param.getSymName().str());
    }
    if (trained.empty() || options.patterns.empty())
      continue;
    frozen += options.patterns.size();
    OwningOpRef<ModuleOp> some = all->clone();
    pass(*all, createDifferentiate());
    pass(*some, createFreeze(options));
    pass(*some, createDifferentiate());
    if (HasFailure())
      return;
    const TensorMap values = randomValues(programOf(*all), seed);
    const TensorMap expected = results(*all, values), found = results(*some, values);
    for (const std::string &name : trained)
      EXPECT_TRUE(sameBits(expected.lookup("grad." + name), found.lookup("grad." + name))) << name;
    for (const std::string &name : options.patterns)
      EXPECT_FALSE(found.contains("grad." + name)) << name;
    EXPECT_TRUE(sameBits(expected.lookup("loss"), found.lookup("loss")));
  }
  EXPECT_GT(frozen, 2 * kPrograms);
}

TEST_F(Finetune, AdaptersOfRandomProgramsHaveTheirGradients) {
  unsigned adapted = 0, checked = 0, joined = 0, experts = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(seed);
    const BoundText source = randomProgram(seed).layered;
    OwningOpRef<ModuleOp> plain = bound(source.text, source.binding);
    ASSERT_TRUE(plain && !HasFailure());
    const std::vector<std::string> targets = weightsOfLinearLayers(modelOf(*plain));
    if (targets.empty())
      continue;
    adapted += targets.size();
    OwningOpRef<ModuleOp> module = plain->clone();
    pass(*module, loraPass(/*rank=*/1, /*alpha=*/0.75, targets));
    if (HasFailure())
      return;
    // Zeros in one of the two matrices: the same model.
    TensorMap values = randomValues(programOf(*module), seed);
    TensorMap zeros = values;
    for (const std::string &name : targets)
      zeros[name + ".lora_b"] = RefTensor(zeros.lookup(name + ".lora_b").shape);
    EXPECT_TRUE(
        sameBits(results(*plain, values).lookup("loss"), results(*module, zeros).lookup("loss")));
    // Else it is the model with the sum.
    TensorMap merged = values;
    for (const std::string &name : targets) {
      const RefTensor a = values.lookup(name + ".lora_a"), b = values.lookup(name + ".lora_b");
      RefTensor &w = merged[name];
      const int64_t columns = w.shape.back(), rows = w.shape[w.shape.size() - 2];
      experts += w.shape.size() == 3;
      for (int64_t n = 0; n < b.size(); ++n) // through all experts
        for (int64_t k = 0; k < columns; ++k)
          w.data[n * columns + k] += 0.75 * b.data[n] * a.data[n / rows * columns + k];
    }
    const double expected = results(*plain, merged).lookup("loss").data[0];
    EXPECT_NEAR(results(*module, values).lookup("loss").data[0], expected,
                1e-9 * (1.0 + std::abs(expected)));

    // Their first matrices joined: the same model.
    OwningOpRef<ModuleOp> fused = module->clone();
    pass(*fused, createFuseAdapters());
    if (HasFailure())
      return;
    modelOf(*fused).walk([&](ConcatOp concat) {
      auto first = concat.getParts().front().getDefiningOp<UseOp>();
      joined += first && first.getVariable().ends_with(".lora_a");
    });
    EXPECT_NEAR(results(*fused, values).lookup("loss").data[0], expected,
                1e-9 * (1.0 + std::abs(expected)));

    OwningOpRef<ModuleOp> gradients = module->clone();
    pass(*gradients, createDifferentiate());
    if (HasFailure())
      return;
    const TensorMap found = results(*gradients, values);
    for (auto &[name, tensor] : found)
      EXPECT_TRUE(!name.starts_with("grad.") || name.contains(".lora_")) << name.str();
    const DerivativeReport report = checkGradients(programOf(*module), values, found, seed);
    EXPECT_EQ(report.failures, "");
    checked += report.checked;
  }
  EXPECT_GT(adapted, kPrograms / 4);
  EXPECT_GT(checked, kPrograms / 4);
  EXPECT_GT(joined, 0u);
  EXPECT_GT(experts, 0u);
}

TEST_F(Finetune, AllFrozenCannotBeDifferentiated) {
  OwningOpRef<ModuleOp> module = bound(R"(
hydra.model @m version 1 {
  hydra.param @w [2] init = ones frozen
  hydra.entry @loss() {
    %w = hydra.use @w
    %loss = hydra.mean %w axes = [0]
    hydra.return loss = %loss
  }
})",
                                       {});
  ASSERT_TRUE(module);
  EXPECT_FALSE(compiler.run(*module, createDifferentiate()));
  EXPECT_NE(compiler.takeDiagnostics().find("all parameters are frozen"), std::string::npos);
}
