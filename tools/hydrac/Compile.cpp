// From a model file to the plan.
#include "tools/hydrac/Compile.h"

#include "compiler/Backends.h"
#include "compiler/codegen/cuda/KernelCache.h"
#include "compiler/driver/Driver.h"
#include "compiler/emit/EmitPlan.h"
#include "passes/precision/Policy.h"
#include "runtime/calls/CheckCalls.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "tools/hydrac/Explain.h"
#include "tools/hydrac/Reports.h"

#include <fmt/ranges.h>

using namespace mlir;

namespace hydra {

/// What a plan says of its origin, before there is code.
static EmitOptions emitOptions(const HydracOptions &options, const CompileOptions &compile) {
  EmitOptions emit;
  emit.producer = "hydrac 0.1";
  emit.modelFile = options.model.file;
  emit.precision = compile.precision;
  emit.mode = modeName(compile.mode).str();
  emit.target = compile.target;
  emit.schedules = options.schedules();
  emit.phases = compile.phases;
  emit.context = static_cast<uint64_t>(compile.context);
  emit.accumulation = compile.mode == Mode::Train ? compile.accumulation : 1;
  emit.options = {{"mode", emit.mode},
                  {"target", options.target},
                  {"O", std::to_string(compile.level)},
                  {"accum", std::to_string(compile.accumulation)},
                  {"clip", compile.clip ? "true" : "false"},
                  {"attention", compile.attention == AttentionForm::Naive ? "naive" : "flash"},
                  {"recompute", options.recompute},
                  {"scan-checkpoint", std::to_string(compile.scanCheckpoint)},
                  {"routing", routingName(compile.binding.routing).str()},
                  {"side-multiprocessors", std::to_string(compile.sideMultiprocessors)},
                  {"ce-chunk", std::to_string(compile.ceChunk)}};
  if (compile.mode == Mode::Generate)
    emit.options.emplace_back("context", std::to_string(compile.context));
  if (compile.reducedReduction)
    emit.options.emplace_back("bf16-reduced-precision-reduction", "true");
  if (!compile.binding.mesh.empty())
    emit.options.emplace_back("mesh", fmt::format("{}", fmt::join(compile.binding.mesh, ",")));
  if (compile.sharding != Sharding::Ddp)
    emit.options.emplace_back("shard", shardingName(compile.sharding).str());
  if (compile.wire == WireFormat::BF16)
    emit.options.emplace_back("reduce", "bf16");
  for (const std::string &pattern : compile.tuning.freeze)
    emit.options.emplace_back("freeze", pattern);
  if (compile.tuning.lora)
    emit.options.emplace_back("lora", options.model.tuning.loraText());
  for (const std::string &name : options.disabled)
    emit.options.emplace_back("disable-pass", name);
  return emit;
}

static plan::PlanModuleOp planOf(ModuleOp module) {
  return *module.getOps<plan::PlanModuleOp>().begin();
}

static void writeText(const std::string &path, ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  if (path == "-")
    printOutput(text);
  else
    writeFile(path, text);
}

static LogicalResult explain(const HydracOptions &options) {
  return printExplanation(
      [&](const std::string &without) -> FailureOr<std::unique_ptr<planfile::PlanT>> {
        Driver driver(options.model);
        if (failed(driver.load()))
          return failure();
        CompileOptions compile = options.compileOptions(driver.model());
        if (!without.empty())
          compile.disabled.insert(without);
        std::vector<std::string> passes;
        if (failed(driver.run(
                [&](OpPassManager &manager) { passes = buildPlanPipeline(manager, compile); })))
          return failure();
        EmitOptions emit = emitOptions(options, compile);
        emit.passes = passes;
        auto plan = emitPlan(planOf(driver.module()), emit);
        if (failed(plan) || failed(driver.verdict()))
          return failure();
        options.checkScalars(**plan);
        return plan;
      });
}

static uint64_t bytesOf(const planfile::PlanT &plan) {
  uint64_t bytes = 0;
  for (const auto &segment : plan.segments)
    bytes += segment.size();
  return bytes;
}

/// Throws Error for a plan that takes more memory than it may.
static void checkFits(const HydracOptions &options, const CompileOptions &compile,
                      const planfile::PlanT &plan) {
  const uint64_t needed = bytesOf(plan), there = options.memoryBudgetBytes();
  if (needed <= there || options.allowOversize)
    return;
  std::vector<std::string> helps = {compile.mode == Mode::Generate
                                        ? "a smaller --batch, --context or --prefill"
                                        : "a smaller --batch or --seq"};
  if (hasBackward(compile.mode) && compile.replayEvery == 0)
    helps.emplace_back("--recompute=every=1");
  if (!precisionPolicy(compile.precision)->holdsValues())
    helps.emplace_back("--precision=bf16");
  helps.emplace_back("or --allow-oversize, to write it all the same");
  support::fail("the plan needs {}, {} more than the {} of {}; what helps: {}",
                report::bytesText(needed), report::bytesText(needed - there),
                report::bytesText(there),
                isGiven(options.memoryBudget) ? "--memory-budget" : compile.target.name,
                fmt::join(helps, ", "));
}

/// Throws Error for a mesh that no executor runs.
static void checkRanks(const CompileOptions &compile, const planfile::PlanT &plan) {
  uint64_t ranks = 1;
  for (const auto &axis : plan.mesh)
    ranks *= axis->size;
  if (ranks > 1 && !backendOf(compile.target).hasCollectives())
    support::fail("--mesh: {} runs plans on one device; plans for several ranks are for a CPU",
                  compile.target.name);
}

/// A model behind all passes.
struct Lowered {
  std::unique_ptr<Driver> driver;
  CompileOptions compile;
  EmitOptions emit;
  std::unique_ptr<planfile::PlanT> outline; ///< without code; null where --until ends before it
};

static FailureOr<Lowered> lower(const HydracOptions &options, int64_t gatherAhead) {
  Lowered lowered;
  lowered.driver = std::make_unique<Driver>(options.model, options.timing);
  Driver &driver = *lowered.driver;
  if (failed(driver.load()))
    return failure();
  lowered.compile = options.compileOptions(driver.model());
  lowered.compile.gatherAhead = gatherAhead;
  std::vector<std::string> passes;
  if (failed(driver.run([&](OpPassManager &manager) {
        passes = buildPlanPipeline(manager, lowered.compile);
      })))
    return failure();
  if (options.until.getNumOccurrences() > 0)
    return lowered;
  lowered.emit = emitOptions(options, lowered.compile);
  lowered.emit.passes = passes;
  auto outline = emitPlan(planOf(driver.module()), lowered.emit);
  if (failed(outline) || failed(driver.verdict()))
    return failure();
  lowered.outline = std::move(*outline);
  return lowered;
}

/// With parameters gathered as far ahead of their readers as memory allows.
static FailureOr<Lowered> lower(const HydracOptions &options) {
  const uint64_t most = options.memoryBudgetBytes();
  for (int64_t ahead = CompileOptions().gatherAhead;; --ahead) {
    FailureOr<Lowered> lowered = lower(options, ahead);
    if (failed(lowered) || !lowered->outline || bytesOf(*lowered->outline) <= most || ahead == 0 ||
        !llvm::is_contained(lowered->emit.passes, "hydra-overlap-collectives"))
      return lowered;
  }
}

LogicalResult compile(const HydracOptions &options) {
  options.check();
  if (options.explain)
    return explain(options);
  FailureOr<Lowered> lowered = lower(options);
  if (failed(lowered))
    return failure();
  auto &[driver, compile, emit, outline] = *lowered;
  if (!outline) {
    writeText(options.output.getNumOccurrences() ? options.output.getValue() : "-",
              driver->module());
    return success();
  }
  plan::PlanModuleOp module = planOf(driver->module());
  options.checkScalars(*outline);
  printReports(options, *outline);
  if (options.reports() && options.output.getNumOccurrences() == 0)
    return success();
  checkFits(options, compile, *outline);
  checkRanks(compile, *outline);
  std::string cache = options.kernelCache;
  if (!isGiven(options.kernelCache))
    cache = cuda::KernelCache::defaultDirectory();
  TimingScope scope = driver->time("Code generation");
  FailureOr<CompiledKernels> kernels =
      backendOf(compile.target).compileKernels(module, compile.target, {.cache = cache});
  if (failed(kernels))
    return failure();
  emit.code = std::move(*kernels);
  auto content = emitPlan(module, emit);
  if (failed(content) || failed(driver->verdict()))
    return failure();
  const runtime::PlanFile plan =
      runtime::PlanFile::parse(runtime::encodePlan(**content), options.output.getValue());
  runtime::checkCalls(plan.plan()); // what an executor would refuse is not written
  runtime::writePlan(options.output.getValue(), plan);
  return success();
}

} // namespace hydra
