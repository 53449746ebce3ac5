// Properties of the model files (models.md section 11.4), seen through the oracle: what a token may
// depend on, and configurations that must be one and the same function.
#include "test/support/Compile.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace hydra;
using namespace hydra::test;

namespace {

using Settings = std::vector<std::string>;

constexpr int64_t kBatch = 2, kLength = 20, kVocabulary = 97;

struct Size {
  int64_t batch = kBatch, length = kLength;
};

/// One entry of a model, bound to numbers; of `loss` with the gradients of all parameters.
class Program {
public:
  Program(const std::string &model, Settings settings, const std::string &entry,
          const std::string &preset = "ref", Size size = {}) {
    module = compiler.parseFile(sourcePath("models/" + model + ".mlir"));
    BindingOptions binding;
    binding.preset = preset;
    binding.settings = std::move(settings);
    binding.batch = size.batch;
    binding.seq = size.length;
    binding.programs = {"program:" + entry};
    bound = module && compiler.run(*module, [&](mlir::OpPassManager &passes) {
      buildForwardPipeline(passes, binding);
      if (entry == "loss")
        buildTrainingPipeline(passes, Mode::Grad, {"program"}, /*accumulation=*/1, /*clip=*/false);
    });
    EXPECT_TRUE(bound) << compiler.takeDiagnostics();
  }

  /// Initial parameters and state, and defaults of numbers.
  TensorMap values() {
    llvm::FailureOr<TensorMap> values = initialValues(modelOf(*module), /*seed=*/7);
    EXPECT_TRUE(succeeded(values)) << compiler.takeDiagnostics();
    EntryOp program = programOf(*module, "program");
    for (unsigned i = 0; i < program.getBody().getNumArguments(); ++i)
      if (const std::optional<double> value = program.getDefault(i))
        (*values)[llvm::cast<mlir::StringAttr>(program.getArgNames()[i]).getValue()] =
            scalar(*value);
    return *values;
  }

  /// All results. Values that the program does not take are not looked at.
  TensorMap run(const TensorMap &values) {
    llvm::FailureOr<TensorMap> results = interpret(programOf(*module, "program"), values);
    EXPECT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    return succeeded(results) ? *results : TensorMap();
  }
  RefTensor operator()(const TensorMap &values, const char *result) {
    return run(values).lookup(result);
  }

  bool bound = false;

private:
  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

RefTensor someTokens() {
  RefTensor tokens({kBatch, kLength});
  for (int64_t i = 0; i < tokens.size(); ++i)
    tokens.data[i] = (i * i * 5 + 3 * i + 11) % kVocabulary;
  return tokens;
}

/// The largest distance of the scores of tokens [first, last) of a sequence.
double distance(const RefTensor &a, const RefTensor &b, int64_t sequence, int64_t first,
                int64_t last) {
  double largest = 0.0;
  for (int64_t i = (sequence * kLength + first) * kVocabulary;
       i < (sequence * kLength + last) * kVocabulary; ++i)
    largest = std::max(largest, std::abs(a.data[i] - b.data[i]));
  return largest;
}

struct Family {
  const char *name, *model, *preset;
  Settings settings;
};

class Families : public testing::TestWithParam<Family> {};

/// Loss on some tokens, with these parameters instead of initial ones.
double lossOf(const Settings &settings, const TensorMap &changes = {}) {
  Program program("hydra", settings, "eval");
  if (!program.bound)
    return NAN;
  TensorMap values = program.values();
  values["tokens"] = values["labels"] = someTokens();
  for (auto &[name, tensor] : changes)
    values[name] = tensor;
  return program(values, "loss").data[0];
}

/// The bias of all routers of depth.
TensorMap depthBias(double bias) {
  TensorMap changes;
  for (int layer = 0; layer < 3; ++layer)
    changes["layers." + std::to_string(layer) + ".mor_b"] = RefTensor({1}, bias);
  return changes;
}

} // namespace

TEST_P(Families, TokensDependOnThoseBeforeThemInTheirSequence) {
  Program logits(GetParam().model, GetParam().settings, "logits", GetParam().preset);
  ASSERT_TRUE(logits.bound);
  TensorMap values = logits.values();
  values["tokens"] = someTokens();
  const RefTensor before = logits(values, "logits");
  for (const int64_t changed : {0, 5, 16, 19}) {
    SCOPED_TRACE(changed);
    RefTensor &tokens = values["tokens"] = someTokens();
    tokens.data[kLength + changed] = std::fmod(tokens.data[kLength + changed] + 40.0, kVocabulary);
    const RefTensor after = logits(values, "logits");
    EXPECT_LE(distance(before, after, 0, 0, kLength), 1e-12);
    EXPECT_LE(distance(before, after, 1, 0, changed), 1e-12);
    EXPECT_GT(distance(before, after, 1, changed, kLength), 1e-6);
  }
}

// Top-k is left out: whom it chooses depends on the whole sequence.
INSTANTIATE_TEST_SUITE_P(
    Models, Families,
    testing::Values(Family{"CS336", "cs336", "tiny", {}}, Family{"Llama", "llama", "tiny", {}},
                    Family{"GPT2", "gpt2", "tiny", {}}, Family{"TTT", "ttt", "ref", {}},
                    Family{"Megalodon", "megalodon", "ref", {}},
                    Family{"MegalodonRecurrence", "megalodon", "ref", {"ema=sequential"}},
                    Family{"HydraFixed", "hydra", "ref", {"mor=fixed", "mod=dense"}},
                    Family{"HydraDynamic", "hydra", "ref", {"mod=dense"}},
                    Family{"HydraBlend", "hydra", "ref", {"mod=dense", "blend=true"}},
                    Family{"HydraStatic", "hydra", "ref", {"mor=static", "mod=static"}}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Hydra, EveryTokenAtTheLastRecursionIsFixedDepth) {
  const double fixed = lossOf({"mor=fixed", "mod=dense"});
  EXPECT_NEAR(lossOf({"mod=dense", "min_depth=2"}), fixed, 1e-12);
  EXPECT_NEAR(lossOf({"mod=dense", "min_depth=0"}, depthBias(20.0)), fixed, 1e-12);
  EXPECT_NEAR(lossOf({"mor=fixed", "mod=dense", "R=1"}),
              lossOf({"mod=dense", "R=1", "min_depth=0"}), 1e-12);
}

TEST(Hydra, EveryTokenAtTheFirstRecursionIsDepthOne) {
  TensorMap changes = depthBias(-20.0);
  const double routed = lossOf({"mod=dense", "min_depth=0"}, changes);
  Program whole("hydra", {}, "eval");
  ASSERT_TRUE(whole.bound);
  TensorMap parameters = whole.values(), first;
  for (auto &[name, tensor] : parameters) {
    RefTensor kept = tensor;
    if (name.ends_with("rec_bias") || name.ends_with("rec_embed")) {
      kept = RefTensor({1, tensor.cols()});
      std::copy_n(tensor.data.begin(), tensor.cols(), kept.data.begin());
    }
    first[name] = kept;
  }
  EXPECT_NEAR(lossOf({"mor=fixed", "mod=dense", "R=1"}, first), routed, 1e-12);
}

TEST(Hydra, ACapacityOfAllTokensIsDense) {
  EXPECT_NEAR(lossOf({"kappa=1.0"}), lossOf({"kappa=1.0", "mod=dense"}), 1e-12);
  EXPECT_GT(std::abs(lossOf({"kappa=0.01"}) - lossOf({"kappa=0.01", "mod=dense"})), 1e-9);
}

TEST(Hydra, BlendingEndsAtBothOfItsParts) {
  const Settings blend = {"blend=true"};
  EXPECT_NEAR(lossOf(blend, {{"s", scalar(1.0)}}), lossOf({}), 1e-12);
  EXPECT_NEAR(lossOf(blend, {{"s", scalar(0.0)}}), lossOf({"mor=fixed"}), 1e-12);
}

TEST(Megalodon, ItsFeedForwardPartAddsToWhatCameIn) {
  Program layers("megalodon", {}, "logits"), none("megalodon", {"L=0"}, "logits");
  ASSERT_TRUE(layers.bound && none.bound);
  TensorMap values = layers.values();
  values["tokens"] = someTokens();
  for (const char *name : {"layers.0.fc2", "layers.1.fc2"})
    values[name] = RefTensor(values[name].shape);
  EXPECT_LE(distance(layers(values, "logits"), none(values, "logits"), 0, 0, kLength), 1e-12);
}

TEST(Megalodon, WithoutAttentionsResultOnlyTheFeedForwardPartIsLeft) {
  Program logits("megalodon", {}, "logits");
  ASSERT_TRUE(logits.bound);
  TensorMap values = logits.values();
  values["tokens"] = someTokens();
  for (int layer = 0; layer < 2; ++layer)
    for (const char *name : {"wh1", "bh1", "wh2"}) {
      RefTensor &tensor = values["layers." + std::to_string(layer) + "." + name];
      tensor = RefTensor(tensor.shape);
    }
  const RefTensor before = logits(values, "logits");
  for (const char *name : {"layers.0.wz", "layers.0.wv", "layers.1.alpha", "layers.1.omega"})
    for (double &v : values[name].data)
      v += 0.3;
  EXPECT_LE(distance(before, logits(values, "logits"), 0, 0, kLength), 1e-12);
}

// Two documents in a row, the second of which begins within a chunk, are what they are alone.
class Packed : public testing::TestWithParam<std::pair<const char *, const char *>> {};

INSTANTIATE_TEST_SUITE_P(Families, Packed,
                         testing::Values(std::pair{"megalodon", "ref"}, std::pair{"cs336", "tiny"},
                                         std::pair{"gpt2", "tiny"}, std::pair{"llama", "tiny"}),
                         [](const auto &test) { return std::string(test.param.first); });

TEST_P(Packed, DocumentsAreAsInRowsOfTheirOwn) {
  constexpr int64_t first = 20, second = 12, eos = 3;
  const auto [model, preset] = GetParam();
  Program packed(model, {"packed=true", "eos=3"}, "loss", preset, {1, first + second});
  Program alone(model, {}, "loss", preset, {1, first});
  Program behind(model, {}, "loss", preset, {1, second});
  ASSERT_TRUE(packed.bound && alone.bound && behind.bound);
  std::vector<double> text(first + second + 1);
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<double>(10 + (i * i * 7 + 3 * i) % 80);
  text[first - 1] = eos;
  const auto give = [&](TensorMap values, int64_t begin, int64_t length) {
    RefTensor tokens({1, length}), labels({1, length});
    std::copy_n(text.begin() + begin, length, tokens.data.begin());
    std::copy_n(text.begin() + begin + 1, length, labels.data.begin());
    values["tokens"] = tokens;
    values["labels"] = labels;
    return values;
  };
  TensorMap ofFirst = give(alone.values(), 0, first);
  ofFirst["labels"].data[first - 1] = -100; // which is the second's first token
  const TensorMap whole = packed.run(give(packed.values(), 0, first + second)),
                  a = alone.run(ofFirst), b = behind.run(give(behind.values(), first, second));
  ASSERT_EQ(whole.size(), a.size());
  // Losses and gradients are means over tokens that count.
  const double share = double(first - 1) / double(first - 1 + second);
  for (auto &[name, tensor] : whole)
    for (int64_t i = 0; i < tensor.size(); ++i)
      ASSERT_NEAR(tensor.data[i],
                  share * a.lookup(name).data[i] + (1.0 - share) * b.lookup(name).data[i], 1e-11)
          << name.str() << " " << i;
}
