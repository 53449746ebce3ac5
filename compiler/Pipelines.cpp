// The default order of passes.
#include "compiler/Pipelines.h"

#include "compiler/Backends.h"
#include "compiler/lowering/LibraryLowering.h"
#include "passes/precision/Policy.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace hydra {

StringRef modeName(Mode mode) {
  switch (mode) {
  case Mode::Generate:
    return "generate";
  case Mode::Forward:
    return "forward";
  case Mode::Grad:
    return "grad";
  case Mode::Train:
    return "train";
  }
  llvm_unreachable("four modes");
}

static void simplify(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

ApplyDropoutOptions dropoutOptions(const std::vector<std::string> &training) {
  ApplyDropoutOptions options;
  options.programs.assign(training.begin(), training.end());
  return options;
}

LoraOptions loraOptions(const TuningOptions &tuning) {
  LoraOptions options;
  if (tuning.lora) {
    options.rank = tuning.lora->rank;
    options.alpha = tuning.lora->alpha;
    options.targets.assign(tuning.lora->targets.begin(), tuning.lora->targets.end());
  }
  return options;
}

FreezeOptions freezeOptions(const TuningOptions &tuning) {
  FreezeOptions options;
  options.patterns.assign(tuning.freeze.begin(), tuning.freeze.end());
  return options;
}

SelectPrecisionOptions selectPrecisionOptions(const std::vector<std::string> &rules) {
  SelectPrecisionOptions options;
  options.rulesOption.assign(rules.begin(), rules.end());
  return options;
}

SelectQuantizedOptions selectQuantizedOptions(const QuantizationOptions &quantization) {
  SelectQuantizedOptions options;
  options.format = quantization.format == QuantizedFormat::E4M3 ? "e4m3" : "hybrid";
  options.keep.assign(quantization.keep.begin(), quantization.keep.end());
  options.least = quantization.least;
  return options;
}

StringRef scalingName(QuantizedScaling scaling) {
  switch (scaling) {
  case QuantizedScaling::Tensor:
    return "tensor";
  case QuantizedScaling::Row:
    return "row";
  case QuantizedScaling::Block128:
    return "block128";
  }
  llvm_unreachable("three scalings");
}

QuantizeMatmulsOptions quantizeMatmulsOptions(const QuantizationOptions &quantization,
                                              int64_t accumulation) {
  QuantizeMatmulsOptions options;
  options.scaling = scalingName(quantization.scaling).str();
  options.amax = quantization.amax == QuantizedAmax::Delayed ? "delayed" : "current";
  options.history = quantization.amaxHistory;
  options.accum = accumulation;
  options.strict = quantization.strict;
  return options;
}

bool roundsLogits(const ProgramOptions &program) {
  const PrecisionPolicy &policy = *precisionPolicy(program.precision);
  if (program.logits == LogitsFormat::Auto)
    return policy.format == support::DType::BF16 && !policy.quantizes;
  return program.logits == LogitsFormat::BF16;
}

MixedPrecisionOptions mixedPrecisionOptions(const ProgramOptions &program) {
  MixedPrecisionOptions options;
  options.policy = program.precision;
  options.roundLogits = roundsLogits(program);
  return options;
}

OptimizerOptions optimizerOptions(const std::vector<std::string> &programs, int64_t accumulation,
                                  bool clip, const UpdateOptions &update) {
  OptimizerOptions options;
  options.programs.assign(programs.begin(), programs.end());
  options.accum = accumulation;
  options.clip = clip;
  options.emaDecay = update.emaDecay;
  options.swaFrom = update.swaFrom;
  options.normSpike = update.normSpike;
  options.batchFilter = update.batchFilter;
  options.groupNorms = update.groupNorms;
  options.gradHistograms = update.gradHistograms;
  options.exchangeLast = update.exchange == AccumExchange::Last;
  return options;
}

void buildForwardPipeline(OpPassManager &passes, const BindingOptions &binding,
                          const TuningOptions &tuning, const std::vector<std::string> &training) {
  passes.addPass(createBind(bindOptions(binding)));
  passes.addPass(createUnrollLayers());
  passes.addPass(createApplyDropout(dropoutOptions(training)));
  if (tuning.lora)
    passes.addPass(createLora(loraOptions(tuning)));
  if (!tuning.freeze.empty())
    passes.addPass(createFreeze(freezeOptions(tuning)));
  simplify(passes);
}

void buildTrainingPipeline(OpPassManager &passes, Mode mode, std::vector<std::string> programs,
                           int64_t accumulation, bool clip, bool scaleLoss,
                           const UpdateOptions &update, GradientFormat gradients) {
  if (!hasBackward(mode))
    return;
  DifferentiateOptions differentiate;
  differentiate.programs.assign(programs.begin(), programs.end());
  differentiate.lossScale = scaleLoss && mode == Mode::Train;
  passes.addPass(createDifferentiate(differentiate));
  if (gradients == GradientFormat::BF16)
    passes.addPass(createNarrowGradients());
  if (mode == Mode::Train)
    passes.addPass(createOptimizer(optimizerOptions(programs, accumulation, clip, update)));
  simplify(passes);
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<HydraDialect, plan::PlanDialect>();
  registerLibraryLowerings(registry);
  registerBackends(registry);
}

void registerEverything(DialectRegistry &registry) {
  registerDialects(registry);
  registerHydraPasses();
  registerCanonicalizerPass();
  registerCSEPass();
}

} // namespace hydra
