// Random programs through every pass: equal values before and after, and gradients that differences
// confirm.
#include "test/support/Compile.h"
#include "test/support/Derivative.h"
#include "test/support/RandomProgram.h"

#include "mlir/Transforms/Passes.h"
#include <gtest/gtest.h>

#include <cmath>

using namespace hydra;
using namespace hydra::test;
using mlir::ModuleOp;
using mlir::OwningOpRef;

namespace {

constexpr uint64_t kShards = 16, kProgramsPerShard = 20; // together at least 300

/// One random program on its way through the pipeline.
class Journey {
public:
  explicit Journey(uint64_t seed) : seed(seed), program(randomProgram(seed)) {}

  void run() {
    module = start(program.layered);
    ASSERT_TRUE(module) << compiler.takeDiagnostics() << program.layered.text;
    pass(bindPass(program.layered.binding));
    pass(createUnrollLayers());
    if (testing::Test::HasFailure())
      return;
    values = randomValues(programOf(*module), seed);
    evaluate();
    compareWithFlat();
    OwningOpRef<ModuleOp> forward = module->clone();
    simplify();
    pass(createDifferentiate());
    evaluate();
    simplify();
    if (testing::Test::HasFailure())
      return;
    for (auto &[name, tensor] : last)
      for (const double v : tensor.data)
        ASSERT_TRUE(std::isfinite(v)) << name.str();
    report = checkGradients(programOf(*forward), values, last, seed);
    EXPECT_EQ(report.failures, "");
  }

  DerivativeReport report;

private:
  OwningOpRef<ModuleOp> start(const BoundText &source) {
    OwningOpRef<ModuleOp> result = compiler.parse(source.text);
    if (result)
      expectRoundTrip(*result);
    return result;
  }

  void expectRoundTrip(ModuleOp stage) {
    const std::string text = textOf(stage);
    OwningOpRef<ModuleOp> again = compiler.parse(text);
    ASSERT_TRUE(again) << compiler.takeDiagnostics() << text;
    EXPECT_EQ(textOf(*again), text);
  }

  void pass(std::unique_ptr<mlir::Pass> p) {
    if (testing::Test::HasFailure())
      return;
    const std::string name = p->getArgument().str();
    ASSERT_TRUE(compiler.run(*module, std::move(p))) << name << ":\n" << compiler.takeDiagnostics();
    expectRoundTrip(*module);
  }

  /// Runs the program; what an earlier stage computed too must have the same bits.
  void evaluate() {
    if (testing::Test::HasFailure())
      return;
    llvm::FailureOr<TensorMap> results = interpret(programOf(*module), values);
    ASSERT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    for (auto &[name, tensor] : last) {
      auto it = results->find(name);
      ASSERT_NE(it, results->end()) << name.str();
      EXPECT_TRUE(sameBits(tensor, it->second)) << name.str();
    }
    last = std::move(*results);
  }

  void simplify() {
    pass(mlir::createCanonicalizerPass());
    evaluate();
    pass(mlir::createCSEPass());
    evaluate();
  }

  /// The generator's own flattening of loops, conditions, calls and broadcasts computes the same.
  void compareWithFlat() {
    OwningOpRef<ModuleOp> layered = std::move(module);
    module = start(program.flat);
    ASSERT_TRUE(module) << compiler.takeDiagnostics() << program.flat.text;
    pass(bindPass(program.flat.binding));
    evaluate();
    if (testing::Test::HasFailure())
      return;
    std::vector<std::string> names, flatNames;
    for (auto param : modelOf(*layered).getBody().getOps<ParamOp>())
      names.push_back(param.getSymName().str());
    for (auto param : modelOf(*module).getBody().getOps<ParamOp>())
      flatNames.push_back(param.getSymName().str());
    EXPECT_EQ(names, flatNames);
    llvm::FailureOr<TensorMap> initial = initialValues(modelOf(*layered), seed);
    llvm::FailureOr<TensorMap> flatInitial = initialValues(modelOf(*module), seed);
    ASSERT_TRUE(succeeded(initial) && succeeded(flatInitial)) << compiler.takeDiagnostics();
    for (auto &[name, tensor] : *initial)
      EXPECT_TRUE(sameBits(tensor, flatInitial->lookup(name))) << name.str();
    module = std::move(layered);
  }

  uint64_t seed;
  RandomProgram program;
  Compiler compiler;
  OwningOpRef<ModuleOp> module;
  TensorMap values, last;
};

class RandomPrograms : public testing::TestWithParam<uint64_t> {};

} // namespace

TEST_P(RandomPrograms, KeepTheirValuesThroughEveryPass) {
  unsigned checked = 0, skipped = 0;
  for (uint64_t i = 0; i < kProgramsPerShard; ++i) {
    const uint64_t seed = GetParam() * kProgramsPerShard + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    Journey journey(seed);
    journey.run();
    if (HasFailure())
      return;
    checked += journey.report.checked;
    skipped += journey.report.skipped;
  }
  RecordProperty("derivatives_checked", static_cast<int>(checked));
  RecordProperty("derivatives_skipped", static_cast<int>(skipped));
  printf("checked %u skipped %u\n", checked, skipped);
  EXPECT_LE(skipped, checked / 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range<uint64_t>(0, kShards));
