// The reference cases of models.md section 11 through the training pipeline and the oracle: loss,
// gradients and 20 steps, to the printed digits.
#include "test/support/Golden.h"
#include "test/support/Compile.h"
#include "test/support/GoldenFill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

using namespace hydra;
using namespace hydra::test;

namespace {

/// First values of a parameter: `base + amplitude * u`.
struct Fill {
  double base, amplitude;
};

struct GoldenCase {
  const char *name, *model, *preset;
  std::vector<std::string> settings;
  uint64_t family;
  int64_t batch, seq;
  Fill (*fill)(llvm::StringRef name, llvm::ArrayRef<int64_t> shape);
  double loss, gradientNorm;
  std::span<const GoldenGradient> gradients;
  std::span<const GoldenLoss> trajectory;
  const hydra_ref::Routing *routing = nullptr; ///< of models that have an entry of that name
  std::vector<std::pair<const char *, double>> numbers = {}; ///< of the step, and state
  const hydra_ref::LossAverage *average = nullptr;           ///< after the step
};

constexpr int64_t kVocabulary = 97;

/// A matrix whose results have about the size of its inputs.
Fill matrix(llvm::ArrayRef<int64_t> shape) { return {0.0, std::sqrt(3.0 / double(shape[1]))}; }

Fill fillCs336(llvm::StringRef name, llvm::ArrayRef<int64_t> shape) {
  if (name == "tok_emb")
    return {0.0, 1.0};
  return shape.size() == 1 ? Fill{1.0, 0.1} : matrix(shape);
}

Fill fillTtt(llvm::StringRef name, llvm::ArrayRef<int64_t> shape) {
  if (name == "tok_emb" || name == "theta_lr")
    return {0.0, 0.2};
  if (name == "W0" || name == "W1" || name == "W2")
    return {0.0, 0.3};
  if (name == "ln_b")
    return {0.0, 0.1};
  return shape.size() == 1 || name == "ln_w" ? Fill{1.0, 0.1} : matrix(shape);
}

Fill fillMegalodon(llvm::StringRef name, llvm::ArrayRef<int64_t> shape) {
  if (name == "embed")
    return {0.0, 0.5};
  if (name == "alpha" || name == "delta")
    return {0.0, 0.35};
  if (name == "theta")
    return {0.0, 2.0};
  if (name == "gamma_re")
    return {0.0, 1.7};
  if (name == "gamma_im")
    return {0.0, 0.5};
  if (name == "omega")
    return {0.0, 0.43};
  if (name == "qk_gamma")
    return {0.0, 0.2};
  if (shape.size() == 1 || name == "qk_beta")
    return {0.0, 0.1};
  return {0.0, name == "fc2" ? 1.0 / std::sqrt(128.0) : 1.0 / 8.0};
}

Fill fillHydra(llvm::StringRef name, llvm::ArrayRef<int64_t> shape) {
  if (name == "tau")
    return {2.0, 0.0};
  if (name == "mor_b")
    return {0.1, 0.0};
  if (name == "mod_b")
    return {0.5, 0.0};
  if (name == "mor_w" || name == "mod_w")
    return {0.0, 0.2};
  if (name.contains("_conv"))
    return {0.0, 0.3};
  if (name == "tok_emb" || name.starts_with("rec_"))
    return {0.0, 0.1};
  return shape.size() == 1 ? Fill{1.0, 0.1} : matrix(shape);
}

Fill fillDeltanet(llvm::StringRef name, llvm::ArrayRef<int64_t> shape) {
  if (name == "tok_emb")
    return {0.0, 0.2};
  if (name == "a_log")
    return {0.0, 1.0};
  if (name == "a_bias")
    return {-1.0, 1.0};
  if (name.ends_with("_conv"))
    return {0.0, 0.5};
  return shape.size() == 1 ? Fill{1.0, 0.1} : matrix(shape);
}

std::vector<GoldenCase> cases() {
  const auto megalodon = [](const char *name, std::string chunk, std::string ema = "scan") {
    return GoldenCase{name,
                      "models/megalodon.mlir",
                      "tiny",
                      {"wd=0.0", "Q=" + chunk, "ema=" + ema},
                      4,
                      2,
                      32,
                      fillMegalodon,
                      megalodon::kLoss,
                      megalodon::kGradientNorm,
                      megalodon::kGradients,
                      megalodon::kTrajectory};
  };
  GoldenCase swiglu = megalodon("MegalodonSwiglu", "8");
  swiglu.settings.push_back("swiglu=true");
  swiglu.family = 5;
  swiglu.loss = megalodon::kSwigluLoss;
  swiglu.gradientNorm = megalodon::kSwigluGradientNorm;
  swiglu.gradients = megalodon::kSwigluGradients;
  swiglu.trajectory = megalodon::kSwigluTrajectory;
  const auto hydra = [](const char *name, std::vector<std::string> settings, double loss,
                        double norm, std::span<const GoldenGradient> gradients,
                        std::span<const GoldenLoss> trajectory,
                        const hydra_ref::Routing *routing = nullptr) {
    for (const char *plain : {"wd=0.0", "embed_lr=1.0"})
      settings.push_back(plain);
    return GoldenCase{name, "models/hydra.mlir", "tiny",     settings, 2, 2, 32, fillHydra, loss,
                      norm, gradients,           trajectory, routing};
  };
  return {{"CS336",
           "models/cs336.mlir",
           "tiny",
           {"beta2=0.95", "wd=0.0"},
           1,
           2,
           32,
           fillCs336,
           cs336::kLoss,
           cs336::kGradientNorm,
           cs336::kGradients,
           cs336::kTrajectory},
          {"TTT",
           "models/ttt.mlir",
           "tiny",
           {"wd=0.0"},
           3,
           2,
           40,
           fillTtt,
           ttt::kLoss,
           ttt::kGradientNorm,
           ttt::kGradients,
           ttt::kTrajectory},
          megalodon("Megalodon", "8"),
          megalodon("MegalodonOddChunks", "7"),
          megalodon("MegalodonRecurrence", "8", "sequential"),
          megalodon("MegalodonTransforms", "8", "fft"),
          megalodon("MegalodonTransformsOddChunks", "7", "fft"),
          swiglu,
          hydra("HydraFixed", {"mor=fixed", "mod=dense", "w_aux=0.0"}, hydra_ref::kFixedLoss,
                hydra_ref::kFixedGradientNorm, hydra_ref::kFixedGradients,
                hydra_ref::kFixedTrajectory),
          hydra("HydraDynamic", {}, hydra_ref::kDynamicLoss, hydra_ref::kDynamicGradientNorm,
                hydra_ref::kDynamicGradients, hydra_ref::kDynamicTrajectory,
                &hydra_ref::kDynamicRouting),
          hydra("HydraStatic", {"mor=static", "mod=static"}, hydra_ref::kStaticLoss,
                hydra_ref::kStaticGradientNorm, hydra_ref::kStaticGradients,
                hydra_ref::kStaticTrajectory, &hydra_ref::kStaticRouting)};
}

/// HYDRA between full depth and its routers' own, and what they learn from tokens' losses.
std::vector<GoldenCase> curriculumCases() {
  const auto step = [](const char *name, std::vector<std::string> settings, double loss,
                       double norm, std::span<const GoldenGradient> gradients,
                       std::vector<std::pair<const char *, double>> numbers,
                       const hydra_ref::LossAverage *average = nullptr) {
    return GoldenCase{
        name, "models/hydra.mlir", "tiny", settings, 2,       2,      32, fillHydra, loss,
        norm, gradients,           {},     nullptr,  numbers, average};
  };
  const std::pair<const char *, double> lambda = {"adv_lambda", 0.25}, mult = {"adv_mult", 2.0},
                                        mean = {"ce_mean", 4.5}, variance = {"ce_var", 0.04},
                                        batches = {"ce_batches", 1500};
  using namespace hydra_ref;
  return {step("HydraBlendDynamic", {"blend=true"}, kBlendDynamicLoss, kBlendDynamicGradientNorm,
               kBlendDynamicGradients, {{"s", 0.3}, {"warm", 0.4}}),
          step("HydraBlendStatic", {"blend=true", "mor=static", "mod=static"}, kBlendStaticLoss,
               kBlendStaticGradientNorm, kBlendStaticGradients, {{"s", 0.6}, {"warm", 0.5}}),
          step("HydraAdvantage", {"advantage=true", "loss_aware=0.3"}, kAdvantageLoss,
               kAdvantageGradientNorm, kAdvantageGradients, {lambda, mult, mean, variance, batches},
               &kAdvantageAverage),
          step("HydraBlendAdvantage", {"advantage=true", "loss_aware=0.3", "blend=true"},
               kBlendAdvantageLoss, kBlendAdvantageGradientNorm, kBlendAdvantageGradients,
               {{"s", 0.3}, {"warm", 0.4}, lambda, mult, mean, variance, batches},
               &kBlendAdvantageAverage),
          step("HydraAdvantageFirst", {"advantage=true"}, kAdvantageFirstLoss,
               kAdvantageFirstGradientNorm, kAdvantageFirstGradients, {lambda, mult},
               &kAdvantageFirstAverage)};
}

/// What can be switched: losses and gradients that PyTorch's derivatives of the formulas give.
std::vector<GoldenCase> switchCases() {
  const auto of = [](const char *model, uint64_t family, int64_t seq, auto fill) {
    return [=](const char *name, std::vector<std::string> settings, double loss, double norm) {
      return GoldenCase{name, model, "tiny", std::move(settings), family, 2, seq, fill, loss,
                        norm, {},    {}};
    };
  };
  const auto hydra = of("models/hydra.mlir", 2, 32, fillHydra);
  const auto ttt = of("models/ttt.mlir", 3, 40, fillTtt);
  const auto megalodon = of("models/megalodon.mlir", 4, 32, fillMegalodon);
  const auto deltanet = of("models/deltanet.mlir", 6, 32, fillDeltanet);
  const auto fixedShapes = [&](const char *name, const char *setting, double loss, double norm) {
    return hydra(name, {"mor=static", "mod=static", setting}, loss, norm);
  };
  return {
      fixedShapes("HydraWithoutRope", "use_rope=false", 4.7302190284, 4.27794402e+00),
      fixedShapes("HydraWithoutNorm", "use_qk_norm=false", 4.8144360948, 4.28038600e+00),
      fixedShapes("HydraWithoutConvolutions", "use_convs=false", 4.7424282675, 4.24177575e+00),
      fixedShapes("HydraWithoutMeans", "use_qk_mean=false", 4.7466745229, 4.20807642e+00),
      fixedShapes("HydraWithoutShift", "use_value_shift=false", 4.7088561651, 4.24286587e+00),
      fixedShapes("HydraFourTaps", "conv=4", 4.7413494335, 4.25032475e+00),
      fixedShapes("HydraRopeWithoutGradient", "compat_rope_nograd=true", 4.7335304717,
                  4.12977433e+00),
      fixedShapes("HydraWithoutPonder", "compat_ponder_off=true", 4.7333628422, 4.19784300e+00),
      fixedShapes("HydraWithoutSkip", "mod_static_skip=zero", 4.7365066594, 4.45823503e+00),
      hydra("HydraDynamicWithoutConvolutions", {"use_convs=false", "use_qk_norm=false"},
            4.7219410936, 5.98957665e+00),
      ttt("TTTWithoutGate", {"lr_gating=false"}, 4.9070847269, 4.13428324e+00),
      ttt("TTTFrozen", {"compat_w0_frozen=true"}, 5.1856712637, 3.42682022e+00),
      ttt("TTTMlp", {"inner=mlp"}, 5.0080321497, 3.68074089e+00),
      ttt("TTTMlpFrozen", {"inner=mlp", "compat_w0_frozen=true"}, 5.0080321497, 3.55514738e+00),
      megalodon("MegalodonWindow", {"attention_window=7"}, 4.7476163477, 1.82019847e+00),
      megalodon("MegalodonPrior", {"prior_count=2"}, 4.7289313433, 1.33254132e+00),
      megalodon("MegalodonFactors", {"rescale_nffn=true"}, 4.8686796642, 1.06539611e+00),
      megalodon("MegalodonMasked", {"masked=true", "pad=11"}, 4.7653386602, 1.80965075e+00),
      megalodon("MegalodonMaskedTransforms", {"masked=true", "pad=11", "ema=fft"}, 4.7653386602,
                1.80965075e+00),
      megalodon(
          "MegalodonMaskedDocuments",
          {"masked=true", "pad=11", "packed=true", "eos=25", "attention_window=9", "prior_count=3"},
          4.7014526301, 1.18728463e+00),
      deltanet("DeltaNet", {}, 4.9221723137, 1.89080910e+01),
      deltanet("DeltaNetRecurrence", {"form=tokens"}, 4.9221723137, 1.89080910e+01),
      deltanet("DeltaNetAdditive", {"rule=additive"}, 5.0311654074, 1.90817475e+01),
      deltanet("DeltaNetWithoutGate", {"gated=false"}, 5.0110083779, 1.69802724e+01),
  };
}

std::vector<GoldenCase> routedCases() {
  std::vector<GoldenCase> routed = cases();
  std::erase_if(routed, [](const GoldenCase &c) { return c.routing == nullptr; });
  return routed;
}

class Golden : public testing::TestWithParam<GoldenCase> {
protected:
  const GoldenCase &golden = GetParam();

  /// Compiles the model up to `mode`; the program stays `loss`, or is the entry of that name.
  void compile(Mode mode, const char *entry = "loss") {
    module = compiler.parseFile(sourcePath(golden.model));
    ASSERT_TRUE(module) << compiler.takeDiagnostics();
    BindingOptions binding;
    binding.preset = golden.preset;
    binding.settings = golden.settings;
    binding.batch = golden.batch;
    binding.seq = golden.seq;
    binding.programs = {std::string("loss:") + entry};
    ASSERT_TRUE(compiler.run(*module, [&](mlir::OpPassManager &passes) {
      buildForwardPipeline(passes, binding);
      buildTrainingPipeline(passes, mode, {"loss"}, /*accumulation=*/1,
                            /*clip=*/false);
    })) << compiler.takeDiagnostics();
  }

  /// Section 11.1, with the amplitudes of 11.2.
  TensorMap values() {
    TensorMap values;
    uint64_t ordinal = 0;
    for (ParamOp param : modelOf(*module).getBody().getOps<ParamOp>()) {
      const auto shape = param.getBoundType().getShape();
      llvm::StringRef name = param.getSymName(); // of layers: what follows their number
      const Fill fill = golden.fill(name.substr(name.rfind('.') + 1), shape);
      RefTensor &tensor = values[param.getSymName()] = RefTensor(shape);
      fillGolden(tensor.data, golden.family, ordinal++, fill.base, fill.amplitude);
    }
    const GoldenTokens tokens = goldenTokens(golden.batch, golden.seq, kVocabulary);
    values["tokens"] = values["labels"] = RefTensor({golden.batch, golden.seq});
    values["tokens"].data.assign(tokens.tokens.begin(), tokens.tokens.end());
    values["labels"].data.assign(tokens.labels.begin(), tokens.labels.end());
    EntryOp program = programOf(*module);
    for (unsigned i = 0; i < program.getBody().getNumArguments(); ++i)
      if (const std::optional<double> value = program.getDefault(i))
        values[llvm::cast<mlir::StringAttr>(program.getArgNames()[i]).getValue()] = scalar(*value);
    for (StateOp state : modelOf(*module).getBody().getOps<StateOp>())
      values[state.getSymName()] = RefTensor(state.getBoundType().getShape());
    for (const auto &[name, value] : golden.numbers)
      values[name] = scalar(value);
    if (golden.average)
      for (const int64_t ignored : {3, 7, 32 + 17})
        values["labels"].data[ignored] = -100;
    return values;
  }

  TensorMap run(const TensorMap &inputs) {
    llvm::FailureOr<TensorMap> results = interpret(programOf(*module), inputs);
    EXPECT_TRUE(succeeded(results)) << compiler.takeDiagnostics();
    return succeeded(results) ? *results : TensorMap();
  }

  /// One step's loss and gradients.
  void checkGradients() {
    compile(Mode::Grad);
    if (HasFatalFailure())
      return;
    results = run(values());
    ASSERT_TRUE(results.contains("loss"));
    EXPECT_NEAR(results.lookup("loss").data[0], golden.loss, kGoldenLossTolerance);
    for (const GoldenGradient &expected : golden.gradients) {
      SCOPED_TRACE(expected.name);
      const RefTensor gradient = results.lookup(std::string("grad.") + expected.name);
      ASSERT_EQ(gradient.size(), expected.elements);
      double square = 0.0;
      for (const double v : gradient.data)
        square += v * v;
      EXPECT_NEAR(std::sqrt(square), expected.norm, kGoldenGradientTolerance * expected.norm);
      if (!std::isnan(expected.first))
        EXPECT_NEAR(gradient.data[0], expected.first,
                    kGoldenGradientTolerance * std::abs(expected.first));
    }
    double all = 0.0;
    size_t gradients = 0;
    for (auto &[name, tensor] : results) {
      if (!name.starts_with("grad."))
        continue;
      ++gradients;
      for (const double v : tensor.data)
        all += v * v;
    }
    EXPECT_EQ(gradients,
              static_cast<size_t>(llvm::range_size(modelOf(*module).getBody().getOps<ParamOp>())));
    EXPECT_NEAR(std::sqrt(all), golden.gradientNorm,
                kGoldenGradientTolerance * golden.gradientNorm);
  }

  Compiler compiler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  TensorMap results;
};

class GoldenRouting : public Golden {};
class GoldenCurriculum : public Golden {};
class GoldenSwitches : public Golden {};

} // namespace

TEST_P(Golden, LossAndEveryGradient) { checkGradients(); }

TEST_P(Golden, TwentySteps) {
  compile(Mode::Train);
  if (HasFatalFailure())
    return;
  TensorMap state = values();
  state["lr"] = scalar(1e-3);
  auto next = golden.trajectory.begin();
  for (int64_t updates = 0; next != golden.trajectory.end(); ++updates) {
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

// What routers decide, and the parts of the loss that say so.
TEST_P(GoldenRouting, PartsAndDepths) {
  compile(Mode::Forward, "routing");
  if (HasFatalFailure())
    return;
  const TensorMap results = run(values());
  EXPECT_NEAR(results.lookup("ce").data[0], golden.routing->ce, kGoldenLossTolerance);
  EXPECT_NEAR(results.lookup("aux").data[0], golden.routing->aux, kGoldenLossTolerance);
  EXPECT_NEAR(results.lookup("ponder").data[0], golden.routing->ponder, kGoldenLossTolerance);
  const RefTensor depths = results.lookup("depths");
  ASSERT_EQ(depths.shape, (llvm::SmallVector<int64_t>{3, 3}));
  for (int64_t i = 0; i < depths.size(); ++i)
    EXPECT_EQ(depths.data[i], golden.routing->depths[i / 3][i % 3]) << "block " << i / 3;
  compile(Mode::Forward, "eval");
  EXPECT_NEAR(run(values()).lookup("loss").data[0], golden.routing->ce, kGoldenLossTolerance);
}

TEST_P(GoldenSwitches, LossAndEveryGradient) { checkGradients(); }

TEST_P(GoldenCurriculum, LossGradientsAndAverages) {
  checkGradients();
  if (HasFatalFailure() || !golden.average)
    return;
  EXPECT_NEAR(results.lookup("ce_mean").data[0], golden.average->mean, kGoldenLossTolerance);
  EXPECT_NEAR(results.lookup("ce_var").data[0], golden.average->variance, kGoldenLossTolerance);
  EXPECT_EQ(results.lookup("ce_batches").data[0], golden.average->batches);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenSwitches, testing::ValuesIn(switchCases()),
                         [](const auto &info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Cases, GoldenCurriculum, testing::ValuesIn(curriculumCases()),
                         [](const auto &info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(cases()),
                         [](const auto &info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Cases, GoldenRouting, testing::ValuesIn(routedCases()),
                         [](const auto &info) { return std::string(info.param.name); });
