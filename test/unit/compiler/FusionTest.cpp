// Forming groups changes no bit of any value, and what groups emit is what their operations mean.
#include "compiler/reference/Interpreter.h"
#include "test/support/Compile.h"
#include "test/support/RandomProgram.h"
#include "test/support/RowInterpreter.h"

#include "mlir/Transforms/Passes.h"
#include <gtest/gtest.h>

#include <cmath>

using namespace hydra;
using namespace hydra::test;
using mlir::ModuleOp;
using mlir::OwningOpRef;

namespace {

/// One program on its way to groups, checked at every step.
class FusionCheck {
public:
  explicit FusionCheck(std::string what) : what(std::move(what)) {}

  /// A bound model to a differentiated program, with its update if asked.
  void prepare(const std::string &file, const std::string &text, const BindingOptions &binding,
               bool update) {
    module = file.empty() ? compiler.parse(text) : compiler.parseFile(sourcePath(file));
    ASSERT_TRUE(module) << what << compiler.takeDiagnostics();
    pass(bindPass(binding));
    pass(createUnrollLayers());
    simplify();
    pass(createDifferentiate());
    if (update)
      pass(createOptimizer());
    simplify();
  }

  /// Groups must have the bits of the operations in them, together and alone.
  void check(uint64_t seed) {
    if (testing::Test::HasFailure())
      return;
    values = randomValues(programOf(*module), seed);
    if (values.count("step"))
      values["step"] = scalar(3);
    const TensorMap original = evaluate();
    pass(createChunkLinearCE());
    pass(createLowerLosses());
    expectClose(evaluate(), original, "lower-losses");
    simplify();
    const TensorMap lowered = evaluate();
    pass(createSimplifyMoves());
    expectBits(evaluate(), lowered);
    OwningOpRef<ModuleOp> separate = module->clone();
    for (bool single : {false, true}) {
      if (single)
        module = std::move(separate);
      FormFusionsOptions options;
      options.single = single;
      pass(createFormFusions(options));
      expectBits(evaluate(), lowered);
      expectGrouped();
      expectEmission(lowered);
    }
  }

private:
  void pass(std::unique_ptr<mlir::Pass> p) {
    if (testing::Test::HasFailure())
      return;
    const std::string name = p->getArgument().str();
    ASSERT_TRUE(compiler.run(*module, std::move(p)))
        << what << ": " << name << ":\n" << compiler.takeDiagnostics();
    const std::string text = textOf(*module);
    OwningOpRef<ModuleOp> again = compiler.parse(text);
    ASSERT_TRUE(again) << what << compiler.takeDiagnostics();
    EXPECT_EQ(textOf(*again), text);
  }

  void simplify() {
    pass(mlir::createCanonicalizerPass());
    pass(mlir::createCSEPass());
  }

  TensorMap evaluate() {
    if (testing::Test::HasFailure())
      return {};
    llvm::FailureOr<TensorMap> results = interpret(programOf(*module), values);
    EXPECT_TRUE(succeeded(results)) << what << compiler.takeDiagnostics();
    return succeeded(results) ? std::move(*results) : TensorMap();
  }

  void expectBits(const TensorMap &found, const TensorMap &wanted) {
    for (auto &[name, tensor] : wanted)
      EXPECT_TRUE(sameBits(tensor, found.lookup(name))) << what << ": " << name.str();
  }

  void expectClose(const TensorMap &found, const TensorMap &wanted, llvm::StringRef after) {
    for (auto &[name, tensor] : wanted) {
      const RefTensor other = found.lookup(name);
      ASSERT_EQ(other.shape, tensor.shape) << what << ": " << name.str();
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_NEAR(other.data[i], tensor.data[i], 1e-9 * (1.0 + std::abs(tensor.data[i])))
            << what << ": " << name.str() << "[" << i << "] after " << after.str();
    }
  }

  /// Outside of groups no row-wise operation is left.
  void expectGrouped() {
    if (testing::Test::HasFailure())
      return;
    for (mlir::Operation &op : programOf(*module).getBody().front())
      EXPECT_FALSE(llvm::isa<RowWiseOpInterface>(op))
          << what << ": " << op.getName().getStringRef().str();
  }

  /// Evaluates groups by what they emit.
  void expectEmission(const TensorMap &wanted) {
    if (testing::Test::HasFailure())
      return;
    expectClose(interpretEmission(programOf(*module), values), wanted, "emission");
  }

  std::string what;
  Compiler compiler;
  OwningOpRef<ModuleOp> module;
  TensorMap values;
};

class FusedModel : public testing::TestWithParam<const char *> {};

TEST_P(FusedModel, KeepsEveryBit) {
  const std::string name = GetParam();
  BindingOptions binding;
  binding.preset = "tiny";
  binding.batch = 2;
  binding.seq = 12;
  FusionCheck check(name);
  check.prepare("models/" + name + ".mlir", "", binding, /*update=*/true);
  check.check(/*seed=*/5);
}

INSTANTIATE_TEST_SUITE_P(Models, FusedModel, testing::Values("cs336", "gpt2", "llama"));

TEST(Fusion, RandomProgramsKeepEveryBit) {
  for (uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    const RandomProgram program = randomProgram(seed);
    FusionCheck check("seed " + std::to_string(seed));
    check.prepare("", program.layered.text, program.layered.binding, /*update=*/seed % 3 == 0);
    check.check(seed);
  }
}

} // namespace
