// The default order of passes.
#include "compiler/Pipelines.h"

#include "compiler/Backends.h"
#include "compiler/lowering/LibraryLowering.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace hydra {

static void simplify(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

void buildForwardPipeline(OpPassManager &passes, const BindingOptions &binding) {
  passes.addPass(createBind(bindOptions(binding)));
  passes.addPass(createUnrollLayers());
  simplify(passes);
}

void buildTrainingPipeline(OpPassManager &passes, Mode mode, std::vector<std::string> programs,
                           int64_t accumulation, bool clip, bool scaleLoss) {
  if (!hasBackward(mode))
    return;
  DifferentiateOptions differentiate;
  differentiate.programs.assign(programs.begin(), programs.end());
  differentiate.lossScale = scaleLoss && mode == Mode::Train;
  passes.addPass(createDifferentiate(differentiate));
  if (mode == Mode::Train) {
    OptimizerOptions optimizer;
    optimizer.programs.assign(programs.begin(), programs.end());
    optimizer.accum = accumulation;
    optimizer.clip = clip;
    passes.addPass(createOptimizer(optimizer));
  }
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
