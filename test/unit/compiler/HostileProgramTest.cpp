// Hostile programs are models that bind, evaluate to finite numbers, and meet every operation.
#include "test/support/HostileProgram.h"
#include "test/support/Compile.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

using namespace hydra;
using namespace hydra::test;

namespace {

class HostilePrograms : public testing::TestWithParam<HostileKind> {};

/// What is wrong with the program of a seed; empty: nothing.
std::string problemOf(HostileKind kind, uint64_t seed) {
  const BoundText source = hostileProgram(kind, seed);
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module = compiler.parse(source.text);
  if (!module || !compiler.run(*module, [&](mlir::OpPassManager &passes) {
        buildForwardPipeline(passes, source.binding);
        buildTrainingPipeline(passes, Mode::Grad, {}, /*accumulation=*/1, /*clip=*/false);
      }))
    return compiler.takeDiagnostics();
  EntryOp program = programOf(*module);
  llvm::FailureOr<TensorMap> values = initialValues(modelOf(*module), seed);
  if (failed(values))
    return compiler.takeDiagnostics();
  TensorMap inputs = randomValues(program, seed);
  for (auto &[name, tensor] : *values)
    inputs[name] = tensor;
  for (auto [i, name] : llvm::enumerate(program.getArgNames().getAsValueRange<mlir::StringAttr>()))
    if (int64_t limit = std::abs((*program.getIds())[i]))
      for (double &v : inputs[name].data)
        v = std::fmod(std::abs(v), static_cast<double>(limit));
  llvm::FailureOr<TensorMap> results = interpret(program, inputs);
  if (failed(results))
    return compiler.takeDiagnostics();
  for (auto &[name, tensor] : *results)
    for (const double v : tensor.data)
      if (!std::isfinite(v))
        return name.str() + " is not finite";
  return "";
}

} // namespace

TEST_P(HostilePrograms, BindAndAreFinite) {
  constexpr uint64_t kPrograms = 300;
  uint64_t bad = 0;
  std::string problems;
  for (uint64_t seed = 0; seed < kPrograms; ++seed)
    if (std::string problem = problemOf(GetParam(), seed); !problem.empty()) {
      ++bad;
      problems += llvm::formatv("seed {0}: {1}\n", seed, problem).str();
    }
  RecordProperty("refused", static_cast<int>(bad));
  EXPECT_LE(bad * 20, kPrograms) << problems;
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostilePrograms,
                         testing::Values(HostileKind::Program, HostileKind::Scan,
                                         HostileKind::Training));

TEST(HostileProgram, ReachesEightDimensionsPaddingAndWholeNumbersThatWrap) {
  std::string texts, ofTraining;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    texts += hostileProgram(HostileKind::Program, seed).text;
    ofTraining += hostileProgram(HostileKind::Training, seed).text;
  }
  const std::string dimension = "[^],]+", eight = "shape = \\[(" + dimension + ", ){7}" + dimension;
  for (const std::string &text : {texts, ofTraining})
    EXPECT_TRUE(llvm::Regex(eight).match(text));
  EXPECT_NE(texts.find("= 2000000000 dtype = i32"), std::string::npos);
  EXPECT_NE(ofTraining.find("shape = [B, 1, 1, S]"), std::string::npos); // who counts, of heads
}

TEST(HostileProgram, IsAFunctionOfItsSeed) {
  for (const HostileKind kind : {HostileKind::Program, HostileKind::Scan, HostileKind::Training})
    for (uint64_t seed = 0; seed < 20; ++seed)
      EXPECT_EQ(hostileProgram(kind, seed).text, hostileProgram(kind, seed).text);
  EXPECT_NE(hostileProgram(HostileKind::Program, 0).text,
            hostileProgram(HostileKind::Program, 1).text);
}

// What a person may write before binding: all but what passes make.
TEST(HostileProgram, MeetsEveryOperation) {
  Compiler compiler;
  llvm::StringSet<> missing;
  for (mlir::RegisteredOperationName name :
       compiler.context.getRegisteredOperationsByDialect("hydra"))
    missing.insert(name.getStringRef());
  ASSERT_FALSE(missing.empty());
  for (const char *name : {"linear_gelu",
                           "embedding_grad",
                           "rms_norm_grad",
                           "layer_norm_grad",
                           "softmax_grad",
                           "attention_grad",
                           "cross_entropy_grad",
                           "global_norm",
                           "adafactor",
                           "adamw",
                           "adamw8bit",
                           "lion",
                           "muon",
                           "sgd",
                           "guard",
                           "fused",
                           "copy",
                           "boundary",
                           "loop",
                           "all_gather",
                           "all_to_all",
                           "all_reduce",
                           "reduce_scatter",
                           "rank",
                           "shard",
                           "linear_recurrence_grad",
                           "scan_begin",
                           "scan_end",
                           "cached_attention",
                           "sample",
                           "random",
                           "quantization_scale",
                           "quantize",
                           "quantized_matmul",
                           "scaled_linear",
                           "split_master",
                           "join_master"})
    EXPECT_TRUE(missing.erase(std::string("hydra.") + name)) << name;
  // What changes no program: names of expressions and of parts, and values of symbols.
  for (const char *name : {"derive", "preset", "section"})
    EXPECT_TRUE(missing.erase(std::string("hydra.") + name)) << name;
  for (uint64_t seed = 0; seed < 2000 && !missing.empty(); ++seed)
    for (const HostileKind kind :
         {HostileKind::Program, HostileKind::Scan, HostileKind::Training}) {
      const std::string source = hostileProgram(kind, seed).text;
      llvm::StringRef text = source;
      for (size_t at = 0; (at = text.find("hydra.", at)) != llvm::StringRef::npos; at += 6) {
        llvm::StringRef word = text.drop_front(at);
        missing.erase(
            word.take_until([](char c) { return c != '.' && c != '_' && !std::isalnum(c); }));
      }
    }
  for (const auto &name : missing)
    ADD_FAILURE() << name.getKey().str() << " never occurs";
}
