// From a model to a placed plan: which passes run, in which order.
#include "compiler/PlanPipeline.h"

#include "compiler/Backends.h"
#include "passes/precision/Policy.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace hydra {

namespace {

/// One place of the pipeline.
struct Stage {
  CompilePhase phase;
  bool required;
  unsigned level; ///< runs at this optimisation level and above
  bool trains;    ///< only when there is a backward pass
  bool updates;   ///< only in train mode
  std::function<std::unique_ptr<Pass>(const CompileOptions &)> create;
  bool (*wanted)(const CompileOptions &) = nullptr; ///< whether the flags ask for it; null: always
};

using Options = const CompileOptions &;

const PrecisionPolicy &policyOf(Options options) { return *precisionPolicy(options.precision); }

std::vector<std::string> differentiatedPrograms(Options options) {
  std::vector<std::string> programs;
  for (const TrainingPhase &phase : options.phases)
    programs.push_back(phase.program);
  programs.push_back(options.mode == Mode::Train ? "train" : "loss");
  return programs;
}

std::unique_ptr<Pass> bindPass(Options options) {
  BindOptions bind = bindOptions(options.binding);
  bind.context = options.context;
  return createBind(bind);
}

/// Layers are marked only for hydra-recompute, which removes the marks.
std::unique_ptr<Pass> unrollPass(Options options) {
  UnrollLayersOptions unroll;
  unroll.boundaries = (options.replayEvery > 0 || options.replayLayers > 0) &&
                      hasBackward(options.mode) && options.level >= 2 &&
                      options.until >= CompilePhase::Group &&
                      !options.disabled.contains(kRecomputePass);
  return createUnrollLayers(unroll);
}

std::unique_ptr<Pass> dropoutPass(Options options) {
  return createApplyDropout(dropoutOptions(
      hasBackward(options.mode) ? differentiatedPrograms(options) : std::vector<std::string>()));
}

bool adapts(Options options) { return options.tuning.lora.has_value(); }
bool freezes(Options options) { return !options.tuning.freeze.empty(); }

std::unique_ptr<Pass> loraPass(Options options) { return createLora(loraOptions(options.tuning)); }
std::unique_ptr<Pass> freezePass(Options options) {
  return createFreeze(freezeOptions(options.tuning));
}

bool hasLayerPrecision(Options options) { return !options.layerPrecision.empty(); }
std::unique_ptr<Pass> layerPrecisionPass(Options options) {
  return createSelectPrecision(selectPrecisionOptions(options.layerPrecision));
}

bool generates(Options options) { return options.mode == Mode::Generate; }

std::unique_ptr<Pass> cachePass(Options options) {
  CacheOptions cache;
  cache.context = options.context;
  cache.policy = options.precision;
  return createCache(cache);
}

std::unique_ptr<Pass> nestPass(Options options) {
  NestLoopsOptions nest;
  auto programs = differentiatedPrograms(options);
  nest.programs.assign(programs.begin(), programs.end());
  nest.chunks = options.scanCheckpoint;
  return createNestLoops(nest);
}

std::unique_ptr<Pass> differentiatePass(Options options) {
  DifferentiateOptions differentiate;
  auto programs = differentiatedPrograms(options);
  differentiate.programs.assign(programs.begin(), programs.end());
  differentiate.lossScale = options.mode == Mode::Train && policyOf(options).scalesLoss;
  return createDifferentiate(differentiate);
}

bool hasRanks(Options options) { return !options.binding.mesh.empty(); }

std::unique_ptr<Pass> optimizerPass(Options options) {
  OptimizerOptions optimizer = optimizerOptions(differentiatedPrograms(options),
                                                options.accumulation, options.clip, options.update);
  optimizer.holds = options.holds;
  optimizer.sumLosses = hasRanks(options);
  return createOptimizer(optimizer);
}

bool cutsParameters(Options options) {
  return hasRanks(options) && options.sharding != Sharding::Ddp;
}
bool cutsInLevels(Options options) { return cutsParameters(options) && options.shardLevels > 1; }
bool keepsGathered(Options options) {
  return hasRanks(options) && options.sharding == Sharding::Zero1;
}
bool gathersAgain(Options options) {
  return hasRanks(options) && options.sharding == Sharding::Fsdp &&
         options.resharding != Resharding::Never;
}
bool roundsMade(Options options) { return options.gradients == GradientFormat::BF16; }
bool roundsGradients(Options options) {
  return hasRanks(options) && (options.wire == WireFormat::BF16 || roundsMade(options));
}
/// Ranks round what they send: a rounded sum of theirs could not be made of pieces of it.
bool narrowsGradients(Options options) { return roundsMade(options) && !hasRanks(options); }
bool wantsNaiveAttention(Options options) { return options.attention == AttentionForm::Naive; }
bool wantsFlashAttention(Options options) { return options.attention == AttentionForm::Flash; }
bool followsRouters(Options options) { return options.binding.routing != Routing::Masked; }
bool wantsRecomputation(Options options) {
  return options.recompute != Recomputation::None ||
         roundedCopiesOf(options) == RoundedCopies::Layer;
}

TargetBackend::Wants wantsOf(Options options) { return backendOf(options.target).wants(); }
bool wantsAddedProducts(Options options) { return wantsOf(options).addedProducts; }
bool wantsFusedLoops(Options options) { return wantsOf(options).fusedLoops; }
bool wantsComputedOperands(Options options) { return wantsOf(options).computedOperands; }
bool wantsRotatedGradients(Options options) { return wantsOf(options).rotatedGradients; }
bool wantsBatchedLaunches(Options options) { return wantsOf(options).batchedLaunches; }
/// Beside the main stream run updates, and what ranks exchange.
bool wantsStreams(Options options) {
  return wantsOf(options).streams && (options.mode == Mode::Train || hasRanks(options));
}
bool overlapsExchanges(Options options) { return wantsOf(options).streams && hasRanks(options); }
bool wantsMixedPrecision(Options options) {
  return policyOf(options).format != support::DType::F32;
}
bool keepsRounded(Options options) {
  return policyOf(options).holdsValues() && roundedCopiesOf(options) == RoundedCopies::Held;
}
bool splitsMasters(Options options) { return options.splitMaster; }
bool holdsRounded(Options options) { return policyOf(options).holdsValues(); }
bool savesMemory(Options options) {
  return options.recompute == Recomputation::Rowwise || options.replayEvery > 0 ||
         options.replayLayers > 0;
}

/// What saves memory makes operands of gradients just before they are read.
bool keepsOperands(Options options) { return !savesMemory(options); }

std::unique_ptr<Pass> precisionPass(Options options) {
  MixedPrecisionOptions precision;
  if (wantsMixedPrecision(options))
    precision = mixedPrecisionOptions(options);
  precision.reduced = options.reducedReduction;
  return createMixedPrecision(precision);
}

/// Text is made of few tokens at a time, whose matmuls are as fast as weights are read.
bool quantizes(Options options) {
  return policyOf(options).quantizes && options.mode != Mode::Generate;
}

/// They are among the copies that live across steps.
bool keepsQuantized(Options options) {
  return quantizes(options) && options.quantization.amax == QuantizedAmax::Delayed &&
         keepsRounded(options);
}

/// With zero1 an update gathers what ranks keep, so it has to write that; and a safe form keeps
/// bf16 of all ranks, which a run could not make anew from its own pieces when it goes over to it.
bool gathersQuantized(Options options) {
  if (!cutsParameters(options) || !quantizes(options))
    return false;
  return options.sharding == Sharding::Fsdp ||
         (keepsQuantized(options) && !options.disabled.contains("hydra-keep-quantized") &&
          !options.holds);
}

std::unique_ptr<Pass> selectPass(Options options) {
  return createSelectQuantized(selectQuantizedOptions(options.quantization));
}

std::unique_ptr<Pass> quantizePass(Options options) {
  return createQuantizeMatmuls(quantizeMatmulsOptions(options.quantization, options.accumulation));
}

std::unique_ptr<Pass> gatherQuantizedPass(Options options) {
  GatherQuantizedOptions gather;
  // As hydra-reshard goes on to do, of pieces that are held in bf16.
  const bool again = gathersAgain(options) && options.mode == Mode::Train &&
                     keepsRounded(options) && !options.disabled.contains("hydra-reshard") &&
                     !options.disabled.contains("hydra-keep-rounded");
  gather.between = !again ? 0 : options.resharding == Resharding::Always ? 1 : 2;
  return createGatherQuantized(gather);
}

bool holdsIntegers(Options options) {
  return generates(options) && options.weightFormat != WeightFormat::Rounded;
}

std::unique_ptr<Pass> weightPass(Options options) {
  QuantizeWeightsOptions weights;
  weights.keep.assign(options.weightKeep.begin(), options.weightKeep.end());
  weights.bits = options.weightFormat == WeightFormat::Int4 ? 4 : 8;
  return createQuantizeWeights(weights);
}

std::unique_ptr<Pass> chunkPass(Options options) {
  ChunkLinearCEOptions chunk;
  chunk.chunk = options.ceChunk;
  constexpr uint64_t mostWhereMemoryIsSaved = 512;
  chunk.megabytes = options.target.logitsBytes >> 20;
  if (savesMemory(options))
    chunk.megabytes = std::min<uint64_t>(chunk.megabytes, mostWhereMemoryIsSaved);
  chunk.classMultiple = options.target.classMultiple;
  return createChunkLinearCE(chunk);
}

std::unique_ptr<Pass> recomputePass(Options options) {
  RecomputeOptions recompute;
  recompute.light = options.recompute == Recomputation::Light;
  recompute.inPlace = true;
  recompute.rowwise = options.recompute == Recomputation::Rowwise;
  recompute.every = options.replayEvery;
  recompute.layers = options.replayLayers;
  recompute.copies = roundedCopiesOf(options) == RoundedCopies::Layer;
  return createRecompute(recompute);
}

std::unique_ptr<Pass> epiloguePass(Options options) {
  FuseEpiloguesOptions fuse;
  fuse.epilogues.assign(options.target.epilogues.begin(), options.target.epilogues.end());
  fuse.fewRows = wantsOf(options).fewRows;
  return createFuseEpilogues(fuse);
}

std::unique_ptr<Pass> productPass(Options options) {
  AddProductsOptions add;
  add.fewRows = wantsOf(options).fewRows;
  return createAddProducts(add);
}

/// Without fusion every row-wise operation is a kernel of its own.
std::unique_ptr<Pass> fusionPass(Options options) {
  FormFusionsOptions fusions;
  fusions.single = options.level < 2 || options.disabled.contains("hydra-form-fusions");
  return createFormFusions(fusions);
}

/// Without views every shape operation is a copy.
std::unique_ptr<Pass> layoutPass(Options options) {
  AssignLayoutsOptions layouts;
  layouts.useViews = options.level > 0 && !options.disabled.contains("hydra-assign-layouts");
  return createAssignLayouts(layouts);
}

bool offloadsMoments(Options options) { return options.offload == Offload::Optimizer; }
/// Moments that arrive from the host as an update needs them would hold up its matmul.
bool wantsUsedSums(Options options) {
  return wantsOf(options).usedSums && !offloadsMoments(options);
}

std::unique_ptr<Pass> copyBatchPass(Options options) {
  BatchCopiesOptions copies;
  copies.takeMoments = !offloadsMoments(options);
  return createBatchCopies(copies);
}

std::unique_ptr<Pass> offloadPass(Options options) {
  OffloadMomentsOptions offload;
  offload.least = options.offloadLeast;
  return createOffloadMoments(offload);
}

std::unique_ptr<Pass> overlapPass(Options options) {
  OverlapCollectivesOptions overlap;
  overlap.ahead = options.gatherAhead;
  return createOverlapCollectives(overlap);
}

std::unique_ptr<Pass> streamPass(Options options) {
  AssignStreamsOptions streams;
  streams.multiprocessors = options.sideMultiprocessors;
  return createAssignStreams(streams);
}

std::unique_ptr<Pass> targetPass(Options options) {
  SetTargetOptions target;
  target.target = options.target.attribute();
  return createSetTarget(target);
}

std::unique_ptr<Pass> shardPass(Options options) {
  ShardOptions shard;
  shard.wholeBelow = options.wholeBelow;
  shard.frozenWhole = options.sharding == Sharding::Zero1;
  shard.levels = options.shardLevels;
  return createShard(shard);
}

std::unique_ptr<Pass> reshardPass(Options options) {
  ReshardOptions reshard;
  if (options.resharding == Resharding::Always)
    reshard.between = 1;
  return createReshard(reshard);
}

/// So large that the time in which an exchange begins is a sixteenth of it.
std::unique_ptr<Pass> bucketPass(Options options) {
  BucketCollectivesOptions buckets;
  if (const uint64_t bytes = options.target.bucketBytes())
    buckets.bytes = bytes;
  return createBucketCollectives(buckets);
}

std::unique_ptr<Pass> collectivesPass(Options options) {
  LowerCollectivesOptions collectives;
  collectives.latencyBytes = options.target.latencyBytes();
  collectives.sliceBytes = static_cast<uint64_t>(options.exchangeBytes);
  return createLowerCollectives(collectives);
}

std::unique_ptr<Pass> memoryPass(Options options) {
  PlanMemoryOptions memory;
  memory.reuse = options.level > 0 && !options.disabled.contains("hydra-plan-memory");
  return createPlanMemory(memory);
}

const std::vector<Stage> &stages() {
  using P = CompilePhase;
  static const std::vector<Stage> all = {
      {P::Bind, true, 0, false, false, targetPass},
      {P::Bind, true, 0, false, false, bindPass},
      {P::Bind, true, 0, false, false, unrollPass},
      {P::Bind, true, 0, false, false, dropoutPass},
      {P::Bind, true, 0, false, false, loraPass, adapts},
      {P::Bind, true, 0, true, false, freezePass, freezes},
      {P::Bind, true, 0, false, false, cachePass, generates},
      // At every level: where a value is computed twice instead of used twice, its derivative is a
      // sum in another order, so simplifying is exact behind differentiation only.
      {P::Differentiate, true, 0, false, false, [](Options) { return createCanonicalizerPass(); }},
      {P::Differentiate, true, 0, false, false, [](Options) { return createCSEPass(); }},
      {P::Differentiate, true, 0, false, false, layerPrecisionPass, hasLayerPrecision},
      {P::Differentiate, false, 0, false, false, [](Options) { return createDecomposeAttention(); },
       wantsNaiveAttention},
      {P::Differentiate, false, 2, false, false, [](Options) { return createRaiseAttention(); },
       wantsFlashAttention},
      {P::Differentiate, false, 2, false, false, [](Options) { return createRaiseLinearCE(); }},
      {P::Differentiate, false, 2, false, false, [](Options) { return createFuseQKV(); }},
      {P::Differentiate, false, 2, false, false, [](Options) { return createFuseGateUp(); }},
      {P::Differentiate, false, 2, false, false, [](Options) { return createFuseSiblings(); }},
      {P::Differentiate, false, 2, false, false, [](Options) { return createFuseAdapters(); },
       adapts},
      {P::Differentiate, false, 2, false, false, [](Options) { return createFuseRope(); }},
      {P::Differentiate, true, 0, false, false, selectPass, quantizes},
      {P::Differentiate, false, 0, false, false, shardPass, cutsParameters},
      {P::Differentiate, false, 0, true, false, nestPass,
       [](Options options) { return options.scanCheckpoint > 1; }},
      {P::Differentiate, true, 0, true, false, differentiatePass},
      {P::Differentiate, true, 0, true, false, [](Options) { return createNarrowGradients(); },
       narrowsGradients},
      {P::Differentiate, true, 0, true, true, optimizerPass},
      {P::Differentiate, true, 0, false, false, [](Options) { return createPartition(); },
       hasRanks},
      {P::Group, true, 0, false, false, precisionPass, wantsMixedPrecision},
      {P::Group, true, 0, false, false, weightPass, holdsIntegers},
      {P::Group, false, 0, false, false, quantizePass, quantizes},
      {P::Group, false, 2, false, false, gatherQuantizedPass, gathersQuantized},
      {P::Group, false, 2, true, true, [](Options) { return createKeepQuantized(); },
       keepsQuantized},
      {P::Group, false, 2, true, false, [](Options) { return createQuantizeParts(); }, quantizes},
      {P::Group, true, 0, true, false, [](Options) { return createRoundGradients(); },
       roundsGradients},
      {P::Group, true, 0, false, false, chunkPass},
      {P::Group, true, 0, false, false, [](Options) { return createLowerLosses(); }},
      {P::Group, false, 2, false, false, bucketPass, hasRanks},
      {P::Group, true, 0, false, false, collectivesPass, hasRanks},
      {P::Group, false, 2, false, false, [](Options) { return createWidenLate(); }, holdsRounded},
      {P::Group, false, 1, false, false, [](Options) { return createCanonicalizerPass(); }},
      {P::Group, false, 1, false, false, [](Options) { return createCSEPass(); }},
      {P::Group, false, 2, false, false, [](Options) { return createSimplifyMoves(); }},
      {P::Group, false, 2, false, false, [](Options) { return createReuseNormStats(); }},
      {P::Group, false, 2, false, false, [](Options) { return createHoldRounded(); }, holdsRounded},
      {P::Group, false, 2, true, true, [](Options) { return createKeepRounded(); }, keepsRounded},
      {P::Group, true, 0, true, true, [](Options) { return createKeepGathered(); }, keepsGathered},
      {P::Group, false, 0, true, false, reshardPass, gathersAgain},
      {P::Group, false, 2, true, false, recomputePass, wantsRecomputation},
      {P::Group, true, 0, false, false, [](Options) { return createSplitGathers(); }, cutsInLevels},
      {P::Group, false, 2, true, false, [](Options) { return createJoinWeightGradients(); },
       keepsOperands},
      {P::Group, false, 2, false, false, epiloguePass,
       [](Options options) { return !options.target.epilogues.empty(); }},
      {P::Group, false, 0, true, true, [](Options) { return createSplitMaster(); }, splitsMasters},
      {P::Group, true, 0, false, false, fusionPass},
      {P::Place, false, 2, true, true, [](Options) { return createPlaceOptimizer(); }},
      {P::Place, true, 0, false, false, layoutPass},
      {P::Place, false, 2, false, false, [](Options) { return createSchedule(); }},
      {P::Place, false, 2, false, false, [](Options) { return createSkipRows(); }, followsRouters},
      {P::Plan, true, 0, false, false, [](Options) { return createToPlan(); }},
      {P::Plan, false, 2, false, false, productPass, wantsAddedProducts},
      {P::Plan, false, 2, false, false, [](Options) { return createFuseLoops(); }, wantsFusedLoops},
      {P::Plan, false, 2, false, false, copyBatchPass, wantsBatchedLaunches},
      {P::Plan, false, 2, false, false, [](Options) { return createFuseOperands(); },
       wantsComputedOperands},
      {P::Plan, false, 2, true, true, [](Options) { return createFuseUpdates(); }, wantsUsedSums},
      {P::Plan, false, 2, true, false, [](Options) { return createFuseRotations(); },
       wantsRotatedGradients},
      {P::Plan, true, 0, false, false, [](Options) { return createExpandKernels(); }},
      {P::Plan, false, 0, true, true, offloadPass, offloadsMoments},
      {P::Plan, false, 2, false, false, [](Options) { return createBatchLaunches(); },
       wantsBatchedLaunches},
      {P::Plan, false, 2, false, false, overlapPass, overlapsExchanges},
      {P::Plan, false, 2, false, false, [](Options) { return createFillIdle(); }, wantsStreams},
      {P::Plan, false, 2, false, false, streamPass, wantsStreams},
      {P::Plan, true, 0, false, false, memoryPass},
  };
  return all;
}

} // namespace

/// Copies that live across steps are among what rowwise recomputation is to save.
RoundedCopies roundedCopiesOf(Options options) {
  if (options.roundedCopies != RoundedCopies::Auto)
    return options.roundedCopies;
  return options.recompute == Recomputation::Rowwise ? RoundedCopies::Step : RoundedCopies::Held;
}

/// Required passes that have a lesser form where they are left out, and the level from which on
/// they do all of their work. Of what simplifies, the first must run, and later ones need not.
static const llvm::StringMap<unsigned> &lesserForms() {
  static const llvm::StringMap<unsigned> levels = {{"hydra-form-fusions", 2},
                                                   {"hydra-assign-layouts", 1},
                                                   {"hydra-plan-memory", 1},
                                                   {"canonicalize", 1},
                                                   {"cse", 1}};
  return levels;
}

std::vector<PassEntry> pipelinePasses() {
  std::vector<PassEntry> entries;
  CompileOptions options;
  for (const Stage &stage : stages()) {
    std::unique_ptr<Pass> pass = stage.create(options);
    const bool switched = lesserForms().contains(pass->getArgument());
    entries.push_back(
        {pass->getArgument().str(), pass->getDescription().str(), stage.required && !switched});
  }
  return entries;
}

/// The pass of a stage, if the options ask for it.
static std::unique_ptr<Pass> passOf(const Stage &stage, const CompileOptions &options) {
  if (stage.phase > options.until || (stage.trains && !hasBackward(options.mode)) ||
      (stage.updates && options.mode != Mode::Train) || (stage.wanted && !stage.wanted(options)))
    return nullptr;
  std::unique_ptr<Pass> pass = stage.create(options);
  const bool asked = stage.level <= options.level || options.kept.contains(pass->getArgument());
  const bool leftOut = !stage.required && options.disabled.contains(pass->getArgument());
  return asked && !leftOut ? std::move(pass) : nullptr;
}

std::vector<std::string> optionalPasses(const CompileOptions &options) {
  std::vector<std::string> names;
  for (const Stage &stage : stages())
    if (std::unique_ptr<Pass> pass = passOf(stage, options)) {
      const auto lesser = lesserForms().find(pass->getArgument());
      const bool whole =
          lesser == lesserForms().end()
              ? !stage.required
              : options.level >= lesser->second && !options.disabled.contains(pass->getArgument());
      if (whole)
        names.push_back(pass->getArgument().str());
    }
  return names;
}

std::vector<std::string> buildPlanPipeline(OpPassManager &passes, const CompileOptions &options) {
  std::vector<std::string> names;
  for (const Stage &stage : stages())
    if (std::unique_ptr<Pass> pass = passOf(stage, options)) {
      names.push_back(pass->getArgument().str());
      passes.addPass(std::move(pass));
    }
  return names;
}

} // namespace hydra
