// Random programs through every pass: equal values before and after, gradients that differences
// confirm, and updates that follow from the gradients.
#include "test/support/RandomProgram.h"
#include "test/support/Compile.h"
#include "test/support/Derivative.h"
#include "test/support/NaiveOptimizer.h"

#include "mlir/Transforms/Passes.h"
#include <gtest/gtest.h>

#include <cmath>

using namespace hydra;
using namespace hydra::test;
using mlir::ModuleOp;
using mlir::OwningOpRef;
using testing::Test;

namespace {

constexpr uint64_t kShards = 16, kProgramsPerShard = 20; // together at least 300

/// One random program on its way through the pipeline.
class Journey {
public:
  explicit Journey(uint64_t seed) : seed(seed), program(randomProgram(seed)) {}

  void run() {
    module = parse(program.layered);
    pass(bindPass(program.layered.binding));
    pass(createUnrollLayers());
    if (Test::HasFailure())
      return;
    values = randomValues(programOf(*module), seed);
    evaluate();
    compareWithFlat();
    OwningOpRef<ModuleOp> forward = module->clone();
    simplify();
    pass(createDifferentiate());
    evaluate();
    simplify();
    if (Test::HasFailure())
      return;
    for (auto &[name, tensor] : last)
      for (const double v : tensor.data)
        ASSERT_TRUE(std::isfinite(v)) << name.str();
    report = checkGradients(programOf(*forward), values, last, seed);
    EXPECT_EQ(report.failures, "");
    checkUpdate();
    checkAccumulation();
  }

  DerivativeReport report;

private:
  OwningOpRef<ModuleOp> parse(const BoundText &source) {
    OwningOpRef<ModuleOp> result = compiler.parse(source.text);
    EXPECT_TRUE(result) << compiler.takeDiagnostics() << source.text;
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
    if (Test::HasFailure())
      return;
    const std::string name = p->getArgument().str();
    ASSERT_TRUE(compiler.run(*module, std::move(p))) << name << ":\n" << compiler.takeDiagnostics();
    expectRoundTrip(*module);
  }

  llvm::FailureOr<TensorMap> interpretOrFail(llvm::StringRef name, const TensorMap &inputs) {
    llvm::FailureOr<TensorMap> results = interpret(programOf(*module, name), inputs);
    EXPECT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    return results;
  }

  /// Runs the program; what an earlier stage computed too must have the same bits.
  void evaluate() {
    if (Test::HasFailure())
      return;
    llvm::FailureOr<TensorMap> results = interpretOrFail("loss", values);
    if (failed(results))
      return;
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
    module = parse(program.flat);
    pass(bindPass(program.flat.binding));
    evaluate();
    if (Test::HasFailure())
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

  void expectClose(const RefTensor &found, const RefTensor &wanted, llvm::StringRef name) {
    ASSERT_EQ(found.shape, wanted.shape) << name.str();
    for (int64_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found.data[i], wanted.data[i], 1e-13 * (1.0 + std::abs(wanted.data[i])))
          << name.str() << "[" << i << "]";
  }

  /// Inputs of an update: what the program had, and random moments.
  TensorMap updateInputs(EntryOp update, double clip) {
    TensorMap inputs = randomValues(update, seed);
    for (auto &[name, tensor] : values)
      inputs[name] = tensor;
    inputs["lr"] = scalar(0.01);
    inputs["step"] = scalar(3);
    inputs["clip"] = scalar(clip);
    return inputs;
  }

  /// Everything that `expected` names is in `results` with the same values.
  void expectUpdate(const TensorMap &results, const TensorMap &expected) {
    for (auto &[name, tensor] : expected) {
      auto it = results.find(name);
      ASSERT_NE(it, results.end()) << name.str();
      expectClose(it->second, tensor, name);
    }
  }

  void checkUpdate() {
    OwningOpRef<ModuleOp> gradients = module->clone();
    pass(createOptimizer());
    pass(mlir::createCSEPass());
    if (Test::HasFailure())
      return;
    const double clip = 0.5;
    const TensorMap inputs = updateInputs(programOf(*module), clip);
    llvm::FailureOr<TensorMap> results = interpretOrFail("loss", inputs);
    ASSERT_TRUE(succeeded(results));
    for (auto &[name, tensor] : last)
      if (!name.starts_with("grad."))
        EXPECT_TRUE(sameBits(tensor, results->lookup(name))) << name.str();
    expectUpdate(*results, naiveUpdate(modelOf(*module), inputs, last, clip));
    module = std::move(gradients);
  }

  /// Two micro-batches and one update do what one update with the mean gradient does.
  void checkAccumulation() {
    if (Test::HasFailure())
      return;
    TensorMap other = values;
    for (auto &[name, tensor] : randomValues(programOf(*module), seed + 1))
      if (llvm::is_contained(programOf(*module).getArgNames().getAsValueRange<mlir::StringAttr>(),
                             name))
        other[name] = tensor;
    // With as many labels in each the step is the mean of the two.
    EntryOp entry = programOf(*module);
    for (auto [i, name] : llvm::enumerate(entry.getArgNames().getAsValueRange<mlir::StringAttr>()))
      if (entry.getIds() && (*entry.getIds())[i] < 0)
        other[name] = values.lookup(name);
    llvm::FailureOr<TensorMap> second = interpretOrFail("loss", other);
    ASSERT_TRUE(succeeded(second));
    TensorMap mean;
    for (auto &[name, tensor] : last)
      if (name.starts_with("grad.")) {
        mean[name] = tensor;
        for (int64_t i = 0; i < tensor.size(); ++i)
          mean[name].data[i] = 0.5 * (tensor.data[i] + second->lookup(name).data[i]);
      }

    OptimizerOptions options;
    options.accum = 2;
    options.clip = false;
    pass(createOptimizer(options));
    pass(mlir::createCanonicalizerPass());
    if (Test::HasFailure())
      return;
    TensorMap inputs = updateInputs(programOf(*module, "apply"), /*clip=*/0.0);
    std::vector<std::string> sums;
    for (StateOp state : modelOf(*module).getBody().getOps<StateOp>())
      if (state.getRole() == VariableRole::gradient || state.getRole() == VariableRole::step_sum) {
        sums.push_back(state.getSymName().str());
        inputs[sums.back()] = RefTensor(state.getBoundType().getShape());
      } else if (state.getRole() == VariableRole::copy) {
        inputs[state.getSymName()] = values.lookup(*state.getOwner());
      }
    for (const char *part : {"count", "accumulate"}) {
      if (!modelOf(*module).lookupSymbol<EntryOp>(part))
        continue;
      for (const TensorMap &batch : {values, other}) {
        TensorMap now = inputs;
        for (auto &[name, tensor] : batch)
          now[name] = tensor;
        llvm::FailureOr<TensorMap> results = interpretOrFail(part, now);
        ASSERT_TRUE(succeeded(results));
        for (const std::string &name : sums)
          if (auto sum = results->find(name); sum != results->end())
            inputs[name] = sum->second;
      }
    }
    llvm::FailureOr<TensorMap> results = interpretOrFail("apply", inputs);
    ASSERT_TRUE(succeeded(results));
    TensorMap expected = naiveUpdate(modelOf(*module), inputs, mean, /*clip=*/0.0);
    expected.erase("grad_norm");
    expectUpdate(*results, expected);
    for (const std::string &name : sums)
      for (const double v : results->lookup(name).data)
        EXPECT_EQ(v, 0.0) << name;
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
  EXPECT_LE(skipped * 20, checked) << "too many derivatives were beside a kink";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range<uint64_t>(0, kShards));

TEST(RandomProgram, IsTheSameForTheSameSeed) {
  EXPECT_EQ(randomProgram(7).layered.text, randomProgram(7).layered.text);
  EXPECT_NE(randomProgram(7).layered.text, randomProgram(8).layered.text);
}

TEST(RandomProgram, GrowsWithItsSize) {
  size_t small = 0, large = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    small += randomProgram(seed, 4).flat.text.size();
    large += randomProgram(seed, 40).flat.text.size();
  }
  EXPECT_GT(large, 3 * small);
}

TEST(RandomProgram, CoversEverythingThatAPersonWrites) {
  Compiler compiler;
  llvm::StringSet<> found;
  for (uint64_t seed = 0; seed < kShards * kProgramsPerShard; ++seed) {
    OwningOpRef<ModuleOp> module = compiler.parse(randomProgram(seed).layered.text);
    ASSERT_TRUE(module);
    module->walk([&](mlir::Operation *op) {
      found.insert(op->getName().getStringRef());
      for (const mlir::NamedAttribute a : op->getAttrs())
        if (mlir::isa<mlir::UnitAttr>(a.getValue()))
          found.insert((op->getName().getStringRef() + " " + a.getName().strref()).str());
    });
  }
  // What only passes write; what has random programs of its own (ScanTest); what central
  // differences contradict on purpose.
  const llvm::StringSet<> written = {"hydra.adamw",
                                     "hydra.global_norm",
                                     "hydra.fused",
                                     "hydra.sgd",
                                     "hydra.lion",
                                     "hydra.muon",
                                     "hydra.adafactor",
                                     "hydra.guard",
                                     "hydra.copy",
                                     "hydra.adamw8bit",
                                     "hydra.boundary",
                                     "hydra.scan",
                                     "hydra.detach",
                                     "hydra.prefix_scan",
                                     "hydra.linear_gelu",
                                     "hydra.loop",
                                     "hydra.all_gather",
                                     "hydra.all_to_all",
                                     "hydra.all_reduce",
                                     "hydra.rank",
                                     "hydra.reduce_scatter",
                                     "hydra.shard",
                                     "hydra.scan_begin",
                                     "hydra.scan_end",
                                     "hydra.cached_attention",
                                     "hydra.section",
                                     "hydra.sample",
                                     "hydra.random",
                                     "hydra.quantize",
                                     "hydra.quantization_scale",
                                     "hydra.quantized_matmul",
                                     "hydra.scaled_linear",
                                     "hydra.split_master",
                                     "hydra.join_master"};
  for (const mlir::RegisteredOperationName op :
       compiler.context.getRegisteredOperationsByDialect("hydra")) {
    const llvm::StringRef name = op.getStringRef();
    if (!written.contains(name) && !name.ends_with("_grad"))
      EXPECT_TRUE(found.contains(name)) << name.str() << " is in no random program";
  }
  for (const char *flag : {"hydra.sum keep", "hydra.matmul transpose_a", "hydra.matmul transpose_b",
                           "hydra.rope half_split", "hydra.rope inverse", "hydra.attention causal"})
    EXPECT_TRUE(found.contains(flag)) << flag << " is in no random program";
}

namespace {

/// Adds an operation without a location.
struct LoseLocation : mlir::PassWrapper<LoseLocation, mlir::OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LoseLocation)
  llvm::StringRef getArgument() const override { return "test-lose-location"; }
  void runOnOperation() override {
    mlir::OpBuilder b(programOf(getOperation()).getReturn());
    ConstantOp::create(b, b.getUnknownLoc(), mlir::RankedTensorType::get({}, b.getF32Type()), 1.0);
  }
};

} // namespace

TEST(LocationCheck, FailsAfterAPassThatLosesALocation) {
  Compiler compiler;
  const RandomProgram program = randomProgram(1);
  OwningOpRef<ModuleOp> module = compiler.parse(program.flat.text);
  ASSERT_TRUE(module && compiler.run(*module, bindPass(program.flat.binding)));
  EXPECT_FALSE(compiler.run(*module, std::make_unique<LoseLocation>()));
  const std::string text = compiler.takeDiagnostics();
  EXPECT_NE(text.find("pass test-lose-location lost the location of hydra.constant"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.compare(0, 10, "test.mlir:"), 0) << text;
}
