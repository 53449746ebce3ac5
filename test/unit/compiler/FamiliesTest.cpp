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
          const std::string &preset = "tiny", Size size = {}) {
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
  const char *name, *model;
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
  Program logits(GetParam().model, GetParam().settings, "logits");
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
    testing::Values(Family{"CS336", "cs336", {}}, Family{"Llama", "llama", {}},
                    Family{"GPT2", "gpt2", {}}, Family{"TTT", "ttt", {}},
                    Family{"TTTMlp", "ttt", {"inner=mlp"}}, Family{"DeltaNet", "deltanet", {}},
                    Family{"DeltaNetRecurrence", "deltanet", {"form=tokens"}},
                    Family{"DeltaNetAdditive", "deltanet", {"rule=additive"}},
                    Family{"Megalodon", "megalodon", {}},
                    Family{"MegalodonRecurrence", "megalodon", {"ema=sequential"}},
                    Family{"MegalodonTransforms", "megalodon", {"ema=fft"}},
                    Family{"MegalodonWindow", "megalodon", {"attention_window=5"}},
                    Family{"MegalodonPrior", "megalodon", {"prior_count=2"}},
                    Family{"HydraFixed", "hydra", {"mor=fixed", "mod=dense"}},
                    Family{"HydraDynamic", "hydra", {"mod=dense"}},
                    Family{"HydraBlend", "hydra", {"mod=dense", "blend=true"}},
                    Family{"HydraStatic", "hydra", {"mor=static", "mod=static"}},
                    Family{"HydraFourTaps", "hydra", {"mod=dense", "conv=4"}},
                    Family{"HydraWithoutConvolutions", "hydra", {"mod=dense", "use_convs=false"}}),
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

// The lesson of the routers is doubled for 50 batches where all tokens stop at once, and then not
// again before 500 have passed; it is made small where they have no more depth than they must.
TEST(Hydra, ANudgeBeginsWhereDepthsCollapse) {
  const auto next = [](const Settings &settings, double bias, double nudge, double left,
                       double wait) {
    Settings all = {"auto_nudge=true", "mod=dense"};
    all.insert(all.end(), settings.begin(), settings.end());
    Program loss("hydra", all, "loss");
    EXPECT_TRUE(loss.bound);
    TensorMap values = loss.values();
    values["tokens"] = values["labels"] = someTokens();
    for (auto &[name, tensor] : depthBias(bias))
      values[name] = tensor;
    values["nudge"] = scalar(nudge);
    values["nudge_left"] = scalar(left);
    values["nudge_wait"] = scalar(wait);
    const TensorMap results = loss.run(values);
    return std::vector<double>{results.lookup("nudge").data[0],
                               results.lookup("nudge_left").data[0],
                               results.lookup("nudge_wait").data[0]};
  };
  using Nudge = std::vector<double>;
  EXPECT_EQ(next({"min_depth=0"}, -20.0, 1, 0, 0), (Nudge{2, 50, 500}));
  EXPECT_EQ(next({"min_depth=1"}, -20.0, 1, 0, 1), (Nudge{0.1, 50, 500}));
  EXPECT_EQ(next({"min_depth=0"}, 20.0, 1, 0, 0), (Nudge{1, 0, 0}));
  EXPECT_EQ(next({"min_depth=0"}, -20.0, 2, 50, 500), (Nudge{2, 49, 499}));
  EXPECT_EQ(next({"min_depth=0"}, -20.0, 2, 2, 452), (Nudge{2, 1, 451}));
  EXPECT_EQ(next({"min_depth=0"}, -20.0, 2, 1, 451), (Nudge{1, 0, 450}));
  EXPECT_EQ(next({"min_depth=0"}, -20.0, 1, 0, 2), (Nudge{1, 0, 1}));
}

TEST(Hydra, ANudgeIsAFactorOfTheLesson) {
  const auto lossOfLesson = [](const Settings &settings, const char *factor, double value) {
    Settings all = {"loss_aware=0.3", "mod=dense"};
    all.insert(all.end(), settings.begin(), settings.end());
    Program loss("hydra", all, "loss");
    EXPECT_TRUE(loss.bound);
    TensorMap values = loss.values();
    values["tokens"] = values["labels"] = someTokens();
    values[factor] = scalar(value);
    return loss(values, "loss").data[0];
  };
  EXPECT_NEAR(lossOfLesson({"auto_nudge=true"}, "nudge", 2.0), lossOfLesson({}, "adv_mult", 2.0),
              1e-12);
  EXPECT_NEAR(lossOfLesson({"auto_nudge=true"}, "nudge", 1.0), lossOfLesson({}, "adv_mult", 1.0),
              1e-12);
}

// By chunks, of any length, is token by token: loss and gradients.
TEST(DeltaNet, ChunksAreTheRecurrence) {
  for (const Settings &settings :
       {Settings{}, {"gated=false"}, {"rule=additive"}, {"rule=additive", "gated=false"}}) {
    const auto run = [&](const char *setting) {
      Settings all = settings;
      all.push_back(setting);
      Program loss("deltanet", all, "loss");
      EXPECT_TRUE(loss.bound);
      TensorMap values = loss.values();
      values["tokens"] = values["labels"] = someTokens();
      return loss.run(values);
    };
    const TensorMap tokens = run("form=tokens");
    for (const char *chunk : {"Q=1", "Q=2", "Q=5", "Q=8", "Q=20", "Q=32"}) {
      SCOPED_TRACE(chunk);
      const TensorMap chunks = run(chunk);
      ASSERT_EQ(chunks.size(), tokens.size());
      for (auto &[name, tensor] : chunks)
        for (int64_t i = 0; i < tensor.size(); ++i)
          ASSERT_NEAR(tensor.data[i], tokens.lookup(name).data[i], 1e-11) << name.str() << " " << i;
    }
  }
}

// Padding in front (a whole chunk of it), within the text and behind changes nothing of the text.
TEST(Megalodon, PaddingChangesNothing) {
  constexpr int64_t front = 16, text = 20, back = 5, all = front + text + back, pad = 3;
  for (const Settings &settings : {Settings{},
                                   {"attention_window=5"},
                                   {"prior_count=2"},
                                   {"first_form=true"},
                                   {"ema=sequential", "rescale_nffn=true"},
                                   {"packed=true", "eos=30"}}) {
    SCOPED_TRACE(settings.empty() ? "" : settings[0]);
    Settings masked = settings;
    masked.insert(masked.end(), {"masked=true", "pad=3"});
    Program padded("megalodon", masked, "loss", "tiny", {1, all});
    Program alone("megalodon", settings, "loss", "tiny", {1, text});
    ASSERT_TRUE(padded.bound && alone.bound);
    TensorMap values = alone.values(), more = padded.values();
    RefTensor tokens({1, text}), labels({1, text});
    for (int64_t i = 0; i < text; ++i) {
      tokens.data[i] = static_cast<double>(4 + (i * i * 7 + 3 * i) % 80);
      labels.data[i] = static_cast<double>(4 + (i * i * 5 + i) % 80);
    }
    tokens.data[8] = 30;
    values["tokens"] = tokens;
    values["labels"] = labels;
    RefTensor moreTokens({1, all}, pad), moreLabels({1, all}, pad);
    std::copy_n(tokens.data.begin(), text, moreTokens.data.begin() + front);
    std::copy_n(labels.data.begin(), text, moreLabels.data.begin() + front);
    more["tokens"] = moreTokens;
    more["labels"] = moreLabels;
    const TensorMap a = alone.run(values), b = padded.run(more);
    ASSERT_EQ(a.size(), b.size());
    for (auto &[name, tensor] : a)
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_NEAR(tensor.data[i], b.lookup(name).data[i], 1e-11) << name.str() << " " << i;
  }
}

TEST(Megalodon, MasksWithoutPaddingAndWideWindowsChangeNothing) {
  const auto scores = [](const Settings &settings) {
    Program logits("megalodon", settings, "logits");
    EXPECT_TRUE(logits.bound);
    TensorMap values = logits.values();
    values["tokens"] = someTokens();
    for (double &token : values["tokens"].data)
      token = token == 0 ? 1 : token;
    return logits(values, "logits");
  };
  const RefTensor plain = scores({}), wide = scores({"Cs=64"});
  const auto most = [](const RefTensor &a, const RefTensor &b) {
    return std::max(distance(a, b, 0, 0, kLength), distance(a, b, 1, 0, kLength));
  };
  EXPECT_LE(most(plain, scores({"masked=true", "pad=0"})), 1e-12);
  EXPECT_LE(most(wide, scores({"attention_window=20"})), 1e-12);
  EXPECT_LE(most(wide, scores({"masked=true", "pad=0", "attention_window=64"})), 1e-12);
  EXPECT_GT(most(wide, scores({"attention_window=19"})), 1e-9);
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
class Packed : public testing::TestWithParam<const char *> {};

INSTANTIATE_TEST_SUITE_P(Families, Packed, testing::Values("megalodon", "cs336", "gpt2", "llama"),
                         [](const auto &test) { return std::string(test.param); });

TEST_P(Packed, DocumentsAreAsInRowsOfTheirOwn) {
  constexpr int64_t first = 20, second = 12, eos = 3;
  const char *model = GetParam();
  Program packed(model, {"packed=true", "eos=3"}, "loss", "tiny", {1, first + second});
  Program alone(model, {}, "loss", "tiny", {1, first});
  Program behind(model, {}, "loss", "tiny", {1, second});
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
