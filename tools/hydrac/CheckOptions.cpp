// Which flags of hydrac mean something together.
#include "compiler/Backends.h"
#include "passes/precision/Policy.h"
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "tools/hydrac/Options.h"
#include "tools/hydrac/SafeForm.h"

using namespace mlir;

namespace hydra {

void checkCanBeLeftOut(StringRef flag, const std::string &pass) {
  const std::vector<PassEntry> passes = pipelinePasses();
  auto it = llvm::find_if(passes, [&](const PassEntry &p) { return p.name == pass; });
  if (it == passes.end())
    support::fail("{}: there is no pass '{}'; see --list-passes", flag.str(), pass);
  if (it->required)
    support::fail("{}: '{}' is needed to make a plan", flag.str(), pass);
}

/// Throws Error where a flag asks for what the mode does not have, or -O or --disable-pass takes
/// away.
static void checkPassFlags(const HydracOptions &options) {
  const bool recomputes =
      isGiven(options.recompute) && options.recompute != "none" && options.recompute != "auto";
  if (!hasBackward(options.compile.mode))
    for (const auto &[asks, flag] :
         {std::pair(recomputes, "recompute"),
          std::pair(options.compile.scanCheckpoint > 1, "scan-checkpoint")})
      if (asks)
        support::fail("--{} is of use only with a backward pass, which --mode={} does not have",
                      flag, modeName(options.compile.mode).str());
  auto needs = [&](const std::string &flag, const std::string &pass, int64_t level) {
    if (options.compile.level < level)
      support::fail("{} needs {}, which -O{} leaves out", flag, pass, options.compile.level);
    if (llvm::is_contained(options.disabled, pass))
      support::fail("{} needs {}, which --disable-pass leaves out", flag, pass);
  };
  if (options.recompute.getNumOccurrences() > 0 && options.recompute != "none")
    needs("--recompute=" + options.recompute.getValue(), kRecomputePass.str(), 2);
  if (options.compile.roundedCopies == RoundedCopies::Layer)
    needs("--rounded-copies=layer", kRecomputePass.str(), 2);
  if (options.compile.roundedCopies == RoundedCopies::Held)
    needs("--rounded-copies=held", "hydra-keep-rounded", 2);
  if (options.chooses() && hasBackward(options.compile.mode) && !isGiven(options.roundedCopies))
    needs("--recompute=auto", "hydra-keep-rounded", 2);
  if (options.compile.splitMaster)
    needs("--split-master", "hydra-split-master", 0);
  if (options.compile.offload == Offload::Optimizer)
    needs("--offload=optimizer", kOffloadPass.str(), 0);
  if (options.compile.scanCheckpoint > 1)
    needs("--scan-checkpoint", "hydra-nest-loops", 0);
  if (options.compile.attention == AttentionForm::Naive)
    needs("--attention=naive", "hydra-decompose-attention", 0);
  if (options.compile.sharding != Sharding::Ddp)
    needs("--shard=" + shardingName(options.compile.sharding).str(), "hydra-shard", 0);
  if (isGiven(options.resharding) && options.compile.resharding != Resharding::Never)
    needs("--reshard", "hydra-reshard", 0);
}

/// Throws Error for a report in a format that it does not have, and for several that would be no
/// JSON together.
static void checkReportFormats(const HydracOptions &options) {
  const auto check = [](const cl::opt<std::string> &report, bool hasMarkdown) {
    const std::string &format = report;
    if (isGiven(report) && !format.empty() && format != "json" &&
        !(hasMarkdown && format == "markdown"))
      support::fail("--{} is '{}'; expected {} or nothing", report.ArgStr.str(), format,
                    hasMarkdown ? "json, markdown" : "json");
  };
  check(options.memoryReport, /*hasMarkdown=*/false);
  check(options.costReport, /*hasMarkdown=*/true);
  check(options.kernelReport, /*hasMarkdown=*/true);
  check(options.budgetReport, /*hasMarkdown=*/true);
  // One behind the other, which scripts read as JSON alone.
  const cl::opt<std::string> *inJson = nullptr, *inWords = nullptr;
  for (const cl::opt<std::string> *report :
       {&options.budgetReport, &options.memoryReport, &options.costReport, &options.kernelReport})
    if (isGiven(*report))
      (report->getValue() == "json" ? inJson : inWords) = report;
  if (inJson && inWords)
    support::fail("--{}=json and --{} are printed one behind the other; expected all of them in "
                  "JSON, or none",
                  inJson->ArgStr.str(), inWords->ArgStr.str());
}

/// Throws Error for a report that cannot be written as it is asked for, or of a plan that is not
/// made.
static void checkReports(const HydracOptions &options) {
  if (options.reports() && (options.explain || isGiven(options.until)))
    support::fail("reports are of a whole plan; expected no --{} with them",
                  options.explain ? "explain" : "compile-to");
  if (options.explain && isGiven(options.until))
    support::fail("--explain is of whole plans; expected no --compile-to with it");
  if (options.explain && isGiven(options.output))
    support::fail("--explain prints, and writes no plan; expected no -o with it");
  checkFileNames({&options.memoryTimeline, &options.budgetPicture, &options.model.dumpPasses});
  checkReportFormats(options);
  if (const StringRef picture = options.budgetPicture.getValue();
      !picture.empty() && !picture.ends_with(".svg"))
    support::fail("--budget-svg: '{}' does not end in .svg", picture.str());
  if (isGiven(options.kernelReport)) {
    const Target described = Target::named(options.target);
    if (!backendOf(described).tellsResources())
      support::fail("--kernel-report: kernels of target {} have no registers to count; expected a "
                    "target that is a GPU, such as h200",
                    described.name);
  }
  StringRef timeline = options.memoryTimeline.getValue();
  if (!timeline.empty() && !timeline.ends_with(".csv") && !timeline.ends_with(".json"))
    support::fail("--memory-timeline: '{}' ends neither in .csv nor in .json", timeline.str());
}

/// Throws Error where a file would be written over one that is read, or over another.
static void checkFiles(const HydracOptions &options) {
  const bool written =
      options.output.getNumOccurrences() > 0 ||
      !(options.reports() || options.explain || options.until.getNumOccurrences() > 0);
  const std::string none;
  const bool described = StringRef(options.target.getValue()).ends_with(".json");
  support::checkOutputs({{"the model", options.model.file},
                         {"--target", described ? options.target.getValue() : none}},
                        {{"-o", written ? options.output.getValue() : none},
                         {"--memory-timeline", options.memoryTimeline},
                         {"--budget-svg", options.budgetPicture}});
}

/// Throws Error where flags of --mode=generate meet another mode, or it lacks them.
static void checkGeneration(const HydracOptions &options) {
  const bool generates = options.compile.mode == Mode::Generate;
  if (!generates && (isGiven(options.context) || options.prefill.getNumOccurrences() > 0))
    support::fail("--context and --prefill are for --mode=generate");
  if (!generates)
    return;
  if (!isGiven(options.context))
    support::fail("--mode=generate: needs --context=N, the most tokens of a sequence");
  if (options.compile.binding.seq != 0)
    support::fail("--mode=generate: --seq is for other modes; expected --context and --prefill");
  for (StringRef setting : options.compile.binding.settings)
    if (setting.split('=').first.trim() == "S")
      support::fail(
          "--mode=generate: --set S is for other modes; expected --context and --prefill");
  if (options.programs.getNumOccurrences() > 0)
    support::fail("--mode=generate: --program is for other modes");
}

/// Throws Error where weights are to be integers and cannot be: of programs that change them, or
/// that multiply them by numbers for which there is no kernel.
static void checkWeights(const HydracOptions &options) {
  const CompileOptions &compile = options.compile;
  if (compile.weightFormat == WeightFormat::Rounded) {
    if (options.weightKeep.getNumOccurrences() > 0)
      support::fail("--weight-keep is for --weight-format=int8 or int4");
    return;
  }
  const char *name = compile.weightFormat == WeightFormat::Int4 ? "int4" : "int8";
  if (compile.mode != Mode::Generate)
    support::fail("--weight-format={} is for --mode=generate: other programs multiply many rows, "
                  "or change weights",
                  name);
  const support::DType format = precisionPolicy(compile.precision)->format;
  if (format == support::DType::TF32)
    support::fail("--weight-format={}: --precision=tf32 rounds weights in each matmul; expected "
                  "another precision",
                  name);
  const Target described = Target::named(options.target);
  if (format == support::DType::F32 && backendOf(described).wants().narrowInt8Rows)
    support::fail("--weight-format={}: target {} multiplies them by rows of 16 bits; expected "
                  "--precision=bf16, f16 or pure_bf16",
                  name, described.name);
}

/// Throws Error for what the ranks of a mesh cannot share out.
static void checkSharding(const HydracOptions &options) {
  const CompileOptions &compile = options.compile;
  const bool cuts = compile.sharding != Sharding::Ddp;
  if (cuts && compile.binding.mesh.empty())
    support::fail("--shard={}: needs ranks; expected --mesh=NAME:SIZE",
                  shardingName(compile.sharding));
  if (cuts && compile.mode == Mode::Grad)
    support::fail(
        "--shard={}: is for --mode=train and --mode=forward; gradients are given as a whole",
        shardingName(compile.sharding));
  const bool rounds = compile.wire != WireFormat::F32;
  if (rounds && compile.binding.mesh.empty())
    support::fail("--reduce=bf16: needs ranks; expected --mesh=NAME:SIZE");
  if (rounds && !hasBackward(compile.mode))
    support::fail("--reduce=bf16: is for --mode=train and --mode=grad, which have gradients");
  if (isGiven(options.reduce) && !rounds && compile.gradients == GradientFormat::BF16)
    support::fail("--gradients=bf16 rounds what ranks send of gradients; leave out --reduce=f32");
  for (const cl::Option *flag : {static_cast<const cl::Option *>(&options.twoLevel),
                                 static_cast<const cl::Option *>(&options.nodeRanks)})
    if (isGiven(*flag) && compile.binding.mesh.empty())
      support::fail("--{}: needs ranks; expected --mesh=NAME:SIZE", flag->ArgStr.str());
  if (isGiven(options.exchangeBytes) && compile.binding.mesh.empty())
    support::fail("--exchange-bytes: needs ranks; expected --mesh=NAME:SIZE");
  if (isGiven(options.exchangeBytes) && !hasBackward(compile.mode))
    support::fail("--exchange-bytes: is for --mode=train and --mode=grad, which have gradients");
  constexpr int64_t leastExchange = 4096; // below, most of the time would go into beginning
  if (compile.exchangeBytes != 0 && compile.exchangeBytes < leastExchange)
    support::fail("--exchange-bytes={}: expected 0, which is no bound, or at least {}",
                  compile.exchangeBytes, leastExchange);
  if (compile.sharding != Sharding::Fsdp && isGiven(options.resharding))
    support::fail("--reshard is for --shard=fsdp");
  if (!cuts && isGiven(options.wholeBelow))
    support::fail("--whole-below is for --shard=zero1 and --shard=fsdp");
}

/// Throws Error where there are no moments that could be elsewhere.
static void checkOffload(const HydracOptions &options) {
  const bool offloads = options.compile.offload != Offload::None;
  if (offloads && options.compile.mode != Mode::Train)
    support::fail("--offload=optimizer is for --mode=train, which has an optimizer");
  if (!offloads && isGiven(options.offloadLeast))
    support::fail("--offload-least is for --offload=optimizer");
}

/// Throws Error where what is trained is asked of a plan that trains nothing.
static void checkTuning(const HydracOptions &options) {
  if (!options.compile.tuning.freeze.empty() && !hasBackward(options.compile.mode))
    support::fail("--freeze: is for --mode=train and --mode=grad, which have gradients");
}

/// Throws Error where no parameters can be held in two halves.
static void checkSplitMaster(const CompileOptions &compile) {
  if (!compile.splitMaster)
    return;
  if (compile.mode != Mode::Train)
    support::fail("--split-master is for --mode=train, which updates parameters");
  const PrecisionPolicy &policy = *precisionPolicy(compile.precision);
  if (policy.format != support::DType::BF16 || !policy.roundsParameters())
    support::fail("--split-master: --precision={} does not round parameters of f32 to bf16",
                  compile.precision);
  if (!compile.binding.mesh.empty() && compile.sharding == Sharding::Zero1)
    support::fail(
        "--split-master: with --shard=zero1 ranks keep the bf16 of all parameters, and of "
        "f32 their pieces, which have no halves in common");
}

/// Throws Error for flags of --recompute=auto without it, and for others that it has no use for.
static void checkChoices(const HydracOptions &options) {
  const auto needsAuto = [&](const cl::Option &flag, StringRef name) {
    if (isGiven(flag) && !options.chooses())
      support::fail("{} is for --recompute=auto", name.str());
  };
  needsAuto(options.splitBatch, "--split-batch");
  needsAuto(options.budgetReport, "--budget-report");
  needsAuto(options.budgetPicture, "--budget-svg");
  if (options.chooses() && options.explain)
    support::fail(
        "--recompute=auto and --explain exclude each other; --budget-report explains the choice");
  if (options.chooses() && isGiven(options.until))
    support::fail(
        "--recompute=auto chooses among whole plans; --compile-to ends before there is one");
  if (options.splitBatch && options.compile.mode != Mode::Train)
    support::fail("--split-batch is for --mode=train");
}

/// Throws Error where there are no rounded copies of parameters, or none from step to step.
static void checkRoundedCopies(const CompileOptions &compile) {
  if (compile.roundedCopies == RoundedCopies::Auto)
    return;
  if (!hasBackward(compile.mode))
    support::fail(
        "--rounded-copies is for --mode=train and --mode=grad, which have a backward pass");
  if (!precisionPolicy(compile.precision)->roundsParameters())
    support::fail("--rounded-copies: --precision={} rounds no parameters to fewer bits",
                  compile.precision);
  if (compile.roundedCopies == RoundedCopies::Held && compile.mode != Mode::Train)
    support::fail("--rounded-copies=held is for --mode=train, which updates parameters");
}

/// Throws Error for a flag of what the mode does not do.
static void checkMode(const HydracOptions &options) {
  struct FlagUse {
    const cl::Option *flag;
    bool (*isOf)(Mode);
    const char *modes;
  };
  constexpr auto trains = [](Mode mode) { return mode == Mode::Train; };
  constexpr auto hasLoss = [](Mode mode) { return mode != Mode::Generate; };
  constexpr const char *training = "--mode=train", *updates = "--mode=train, which has updates";
  constexpr const char *losses = "--mode=train, grad and forward, which have losses";
  constexpr const char *many =
      "--mode=train, grad and forward; --mode=generate multiplies few rows, in bf16";
  for (const FlagUse &use :
       std::initializer_list<FlagUse>{{&options.normSpike, trains, training},
                                      {&options.groupNorms, trains, training},
                                      {&options.schedule, trains, updates},
                                      {&options.lr, trains, updates},
                                      {&options.minLr, trains, updates},
                                      {&options.warmup, trains, updates},
                                      {&options.stable, trains, updates},
                                      {&options.scheduleSteps, trains, updates},
                                      {&options.clip, trains, updates},
                                      {&options.noClip, trains, updates},
                                      {&options.model.accum, trains, updates},
                                      {&options.batchFilter, trains, training},
                                      {&options.gradHistograms, trains, training},
                                      {&options.model.average, trains, updates},
                                      {&options.ceChunk, hasLoss, losses},
                                      {&options.model.logits, hasLoss, losses},
                                      {&options.model.fp8Format, hasLoss, many},
                                      {&options.model.fp8Scaling, hasLoss, many},
                                      {&options.model.fp8Amax, hasLoss, many},
                                      {&options.model.fp8AmaxHistory, hasLoss, many},
                                      {&options.model.fp8Keep, hasLoss, many},
                                      {&options.model.fp8Least, hasLoss, many}})
    if (isGiven(*use.flag) && !use.isOf(options.compile.mode))
      support::fail("--{} is for {}", use.flag->ArgStr.str(), use.modes);
}

/// Throws Error where an update is to look at a norm that there is not.
static void checkUpdate(const HydracOptions &options) {
  for (const cl::Option *flag : {static_cast<const cl::Option *>(&options.normSpike),
                                 static_cast<const cl::Option *>(&options.groupNorms)})
    if (isGiven(*flag) && options.noClip &&
        !precisionPolicy(options.compile.precision)->scalesLoss) // which takes the norm
      support::fail("--{} needs the norm of gradients, which --no-clip leaves out",
                    flag->ArgStr.str());
}

/// Throws Error for multiprocessors of a target that has none, or of plans that compute nothing
/// beside anything else.
static void checkMultiprocessors(const HydracOptions &options) {
  if (!isGiven(options.sideMultiprocessors))
    return;
  if (const Target described = Target::named(options.target); described.multiprocessors == 0)
    support::fail("--side-multiprocessors is for GPUs; target {} has no multiprocessors",
                  described.name);
  if (options.compile.mode != Mode::Train && options.compile.binding.mesh.empty())
    support::fail("--side-multiprocessors is for --mode=train and --mesh; --mode={} computes "
                  "nothing beside anything else",
                  modeName(options.compile.mode).str());
}

static void checkKernelCache(const HydracOptions &options) {
  if (options.codeFolder().path.empty() && isGiven(options.kernelCache) &&
      isGiven(options.kernelCacheLimit))
    support::fail("--kernel-cache-limit needs a --kernel-cache; an empty one keeps nothing");
}

void HydracOptions::check() const {
  backendOf(Target::named(target)); // both exist
  checkMultiprocessors(*this);
  checkSharding(*this);
  checkGeneration(*this);
  checkWeights(*this);
  checkTuning(*this);
  model.checkQuantization();
  model.checkLogits();
  model.checkGradients();
  checkLayerPrecision(compile);
  model.checkExchange(/*mayCutBatch=*/splitBatch);
  checkOffload(*this);
  for (const std::string &name : disabled)
    checkCanBeLeftOut("--disable-pass", name);
  checkSafe(*this);
  checkPretests(*this);
  checkChoices(*this);
  checkSplitMaster(compile);
  checkRoundedCopies(compile);
  checkReports(*this);
  (void)memoryBudgetBytes(); // is a size
  checkKernelCache(*this);
  if (compile.reducedReduction &&
      precisionPolicy(compile.precision)->format != support::DType::BF16)
    support::fail("--bf16-reduced-precision-reduction needs --precision=bf16, fp8 or pure_bf16");
  if (noClip && clip > 0)
    support::fail("--clip and --no-clip exclude each other");
  checkMode(*this);
  checkUpdate(*this);
  checkPassFlags(*this);
  (void)givenScalars(); // are schedules
  checkFiles(*this);
}

} // namespace hydra
