// From a model file to the plan without code.
#include "tools/hydrac/Lower.h"

#include "passes/precision/Policy.h"
#include "runtime/report/PlanTimes.h"
#include "runtime/support/Error.h"
#include "tools/hydrac/SafeForm.h"

#include <fmt/ranges.h>

using namespace mlir;

namespace hydra {

/// What a plan says of its origin, before there is code.
static EmitOptions emitOptions(const HydracOptions &options, const CompileOptions &compile) {
  EmitOptions emit;
  emit.producer = "hydrac 0.1";
  emit.modelFile = options.model.file;
  emit.precision = compile.precision;
  emit.mode = compile.mode;
  emit.target = compile.target;
  emit.schedules = options.schedules();
  emit.phases = compile.phases;
  emit.context = static_cast<uint64_t>(compile.context);
  emit.accumulation = compile.mode == Mode::Train ? compile.accumulation : 1;
  emit.options = {{"mode", modeName(compile.mode).str()},
                  {"target", options.target},
                  {"O", std::to_string(compile.level)},
                  {"accum", std::to_string(compile.accumulation)},
                  {"clip", compile.clip ? "true" : "false"},
                  {"attention", compile.attention == AttentionForm::Naive ? "naive" : "flash"},
                  {"recompute", recomputeText(compile)},
                  {"scan-checkpoint", std::to_string(compile.scanCheckpoint)},
                  {"routing", routingName(compile.binding.routing).str()},
                  {"side-multiprocessors", std::to_string(compile.sideMultiprocessors)},
                  {"ce-chunk", std::to_string(compile.ceChunk)}};
  if (hasBackward(compile.mode) && precisionPolicy(compile.precision)->roundsParameters())
    emit.options.emplace_back("rounded-copies", roundedCopiesText(roundedCopiesOf(compile)));
  if (compile.splitMaster)
    emit.options.emplace_back("split-master", "true");
  if (compile.mode == Mode::Generate)
    emit.options.emplace_back("context", std::to_string(compile.context));
  if (precisionPolicy(compile.precision)->quantizes && compile.mode != Mode::Generate) {
    const QuantizationOptions &quantization = compile.quantization;
    emit.options.emplace_back("fp8-format",
                              quantization.format == QuantizedFormat::E4M3 ? "e4m3" : "hybrid");
    emit.options.emplace_back("fp8-scaling", scalingName(quantization.scaling).str());
    if (quantization.amax == QuantizedAmax::Delayed) {
      emit.options.emplace_back("fp8-amax", "delayed");
      emit.options.emplace_back("fp8-amax-history", std::to_string(quantization.amaxHistory));
    }
    emit.options.emplace_back("fp8-least", std::to_string(quantization.least));
    for (const std::string &pattern : quantization.keep)
      emit.options.emplace_back("fp8-keep", pattern);
  }
  for (const std::string &rule : compile.layerPrecision)
    emit.options.emplace_back("layer-precision", rule);
  if (precisionPolicy(compile.precision)->format == support::DType::BF16 &&
      compile.mode != Mode::Generate)
    emit.options.emplace_back("logits", roundsLogits(compile) ? "bf16" : "f32");
  if (compile.gradients == GradientFormat::BF16)
    emit.options.emplace_back("gradients", "bf16");
  if (compile.reducedReduction)
    emit.options.emplace_back("bf16-reduced-precision-reduction", "true");
  if (!compile.binding.mesh.empty())
    emit.options.emplace_back("mesh", fmt::format("{}", fmt::join(compile.binding.mesh, ",")));
  if (compile.nodeRanks > 0)
    emit.options.emplace_back("node-ranks", std::to_string(compile.nodeRanks));
  if (compile.sharding != Sharding::Ddp)
    emit.options.emplace_back("shard", shardingName(compile.sharding).str());
  if (compile.sharding != Sharding::Ddp && compile.shardLevels > 1)
    emit.options.emplace_back("shard-levels", std::to_string(compile.shardLevels));
  if (compile.sharding == Sharding::Fsdp)
    emit.options.emplace_back("reshard", reshardingText(compile.resharding));
  if (compile.update.averages())
    emit.options.emplace_back("average", options.model.average.getValue());
  if (compile.update.normSpike)
    emit.options.emplace_back("norm-spike", "true");
  if (compile.update.batchFilter)
    emit.options.emplace_back("batch-filter", "true");
  if (compile.update.groupNorms)
    emit.options.emplace_back("group-norms", "true");
  if (compile.update.gradHistograms)
    emit.options.emplace_back("grad-histograms", "true");
  if (compile.offload == Offload::Optimizer)
    emit.options.emplace_back("offload", "optimizer");
  if (compile.update.exchange == AccumExchange::Last && emit.accumulation > 1)
    emit.options.emplace_back("accum-exchange", "last");
  if (isGiven(options.exchangeBytes))
    emit.options.emplace_back("exchange-bytes", std::to_string(compile.exchangeBytes));
  if (compile.wire == WireFormat::BF16)
    emit.options.emplace_back("reduce", "bf16");
  if (!compile.target.tiles.empty())
    emit.options.emplace_back("kernel-tiles", tilesText(compile));
  for (const std::string &pattern : compile.tuning.freeze)
    emit.options.emplace_back("freeze", pattern);
  if (compile.tuning.lora)
    emit.options.emplace_back("lora", options.model.tuning.loraText());
  if (options.impliesSafeForm())
    emit.options.emplace_back("safe", "bf16");
  else if (options.hasSafeForm())
    emit.options.emplace_back("safe", options.safe.empty() ? "default" : options.safe.getValue());
  if (isGiven(options.pretests))
    emit.options.emplace_back("pretests", options.pretests.getValue());
  std::vector<std::string> disabled;
  for (const auto &entry : compile.disabled)
    disabled.push_back(entry.first().str());
  llvm::sort(disabled);
  for (const std::string &name : disabled)
    emit.options.emplace_back("disable-pass", name);
  return emit;
}

void checkScans(const HydracOptions &options) {
  if (options.compile.scanCheckpoint == 1)
    return;
  Driver driver(options.model, /*timed=*/false, Driver::Care::Trial);
  if (failed(driver.load()))
    return; // as the compilation will say
  const CompileOptions compile = options.compileOptions(driver.model());
  BindOptions bind = bindOptions(compile.binding);
  bind.loopsFrom = 2; // those of few chunks, which are written out, are scans too
  if (failed(driver.run([&](OpPassManager &manager) { manager.addPass(createBind(bind)); })))
    return;
  const bool any =
      driver.model()->walk([](LoopOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (!any)
    support::fail("--scan-checkpoint={}: no program of @{} has a scan, of which it would keep less",
                  compile.scanCheckpoint, driver.model().getSymName().str());
}

plan::PlanModuleOp planOf(ModuleOp module) { return *module.getOps<plan::PlanModuleOp>().begin(); }

uint64_t bytesOf(const planfile::PlanT &plan) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < plan.segments.size(); ++i)
    if (planfile::SegmentKind(i) != planfile::SegmentKind::host)
      bytes += plan.segments[i].size();
  return bytes;
}

bool hasMoments(const planfile::PlanT &plan) {
  return llvm::any_of(plan.variables, [](const auto &variable) {
    return variable->role == planfile::VariableRole::moment;
  });
}

/// What exchanges between ranks may take of memory.
struct ExchangeRoom {
  int64_t gatherAhead = CompileOptions().gatherAhead;
  std::optional<int64_t> exchangeBytes; ///< none: as the flags have it
};

static FailureOr<Lowered> lower(const HydracOptions &options, const Lowering &lowering,
                                const ExchangeRoom &room) {
  Lowered lowered;
  const bool timed = options.timing && lowering.care == Driver::Care::Full;
  lowered.driver = std::make_unique<Driver>(options.model, timed, lowering.care);
  Driver &driver = *lowered.driver;
  if (failed(driver.load()))
    return failure();
  lowered.compile = options.compileOptions(driver.model());
  if (lowering.setting)
    apply(*lowering.setting, lowered.compile);
  if (!lowering.without.empty()) {
    lowered.compile.disabled.insert(lowering.without);
    for (KernelTiles &tiles : lowered.compile.target.tiles)
      tiles.required = false; // the pass may make the kernel
  }
  if (lowering.safe) {
    lowered.compile = safeOptions(options, driver.model(), std::move(lowered.compile));
    driver.dumpBelow("safe");
  }
  if (lowering.omitted) {
    const CompileOptions safe = safeOptions(options, driver.model(), lowered.compile);
    lowered.compile = withoutOptimization(std::move(lowered.compile), safe, *lowering.omitted);
    driver.dumpBelow("without-" + lowering.omitted->name);
  }
  lowered.compile.gatherAhead = room.gatherAhead;
  if (room.exchangeBytes)
    lowered.compile.exchangeBytes = *room.exchangeBytes;
  std::vector<std::string> passes;
  if (failed(driver.run(
          [&](OpPassManager &manager) { passes = buildPlanPipeline(manager, lowered.compile); })))
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

FailureOr<Lowered> lower(const HydracOptions &options, const Lowering &lowering) {
  ExchangeRoom room;
  const Setting *setting = lowering.setting;
  if (lowering.care == Driver::Care::Trial && setting &&
      (setting->gatherAhead || setting->exchangeBytes)) {
    room.gatherAhead = setting->gatherAhead.value_or(room.gatherAhead);
    room.exchangeBytes = setting->exchangeBytes;
    return lower(options, lowering, room);
  }
  const uint64_t most = options.memoryBudgetBytes();
  if (options.choosesSlices())
    room.exchangeBytes = 0;
  while (true) {
    FailureOr<Lowered> lowered = lower(options, lowering, room);
    if (failed(lowered) || !lowered->outline || bytesOf(*lowered->outline) <= most)
      return lowered;
    const bool gathers = llvm::is_contained(lowered->emit.passes, "hydra-overlap-collectives");
    if (room.exchangeBytes &&
        largestSum(*report::PackedPlan(*lowered->outline)) > options.sliceBytes()) {
      // Slices cost more than to gather one unit ahead instead of two, and less than none.
      if (gathers && room.gatherAhead > 1)
        --room.gatherAhead;
      else
        room = ExchangeRoom();
      continue;
    }
    room.exchangeBytes.reset();
    if (room.gatherAhead == 0 || !gathers)
      return lowered;
    --room.gatherAhead;
  }
}

} // namespace hydra
