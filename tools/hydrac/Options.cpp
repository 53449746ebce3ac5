// The flags of hydrac: what they mean together, and for a model.
#include "tools/hydrac/Options.h"

#include "compiler/Backends.h"
#include "compiler/TwoLevel.h"
#include "passes/precision/Policy.h"
#include "runtime/plan/Schedule.h"
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/NormSpike.h"
#include "tools/hydrac/SafeForm.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <set>

using namespace mlir;

namespace hydra {

/// Throws Error for anything that --recompute does not take.
static void readRecompute(StringRef text, CompileOptions &compile) {
  const std::string whole = text.str();
  const bool rowwise = text.consume_front("rowwise,");
  bool replays = false;
  for (auto [word, number] : {std::pair<StringRef, int64_t *>("every=", &compile.replayEvery),
                              std::pair<StringRef, int64_t *>("layers=", &compile.replayLayers)})
    if (text.consume_front(word)) {
      replays = true;
      if (text.getAsInteger(10, *number) || *number < 1)
        support::fail("--recompute={}{}: expected a positive integer", word.str(), text.str());
    }
  if (replays)
    text = rowwise ? "rowwise" : "light";
  else if (rowwise || (text != "none" && text != "light" && text != "rowwise"))
    support::fail("--recompute is '{}'; expected auto, none, light, rowwise, every=N, layers=K, "
                  "rowwise,every=N or rowwise,layers=K",
                  whole);
  compile.recompute = text == "none"    ? Recomputation::None
                      : text == "light" ? Recomputation::Light
                                        : Recomputation::Rowwise;
}

/// The programs of --phase, each from the entry `loss`. Throws Error for what is no phase.
static void readPhases(const HydracOptions &options, CompileOptions &compile) {
  int64_t last = 0;
  for (const std::string &text : options.phases) {
    auto [steps, choices] = StringRef(text).split(':');
    int64_t count = 0;
    if (steps.getAsInteger(10, count) || count < 1 || count > kMostSteps - last || choices.empty())
      support::fail("--phase is '{}'; expected STEPS:SETTING, such as 1000:mod=dense", text);
    if (compile.mode != Mode::Train)
      support::fail("--phase is for --mode=train");
    std::string settings = choices.str();
    std::replace(settings.begin(), settings.end(), ',', ':'); // as hydra-bind has it
    last += count;
    const std::string number = std::to_string(compile.phases.size() + 1);
    compile.phases.push_back({"train." + number, last});
    compile.binding.programs.push_back("train." + number + ":loss:" + settings);
  }
}

/// Entries whose names say what a run does with them, as hydra-bind has it.
static StringRef roleOf(StringRef program) {
  return program == "logits" ? "@generate" : program == "eval" ? "@eval" : "";
}

/// The programs of --mode=generate: one for every number of tokens that a call reads. Throws Error
/// for numbers that do not fit.
static void addGeneration(const HydracOptions &options, ModelOp source, CompileOptions &compile) {
  if (!source.lookupSymbol<EntryOp>("logits"))
    support::fail("--mode=generate: {} has no entry @logits, the scores of next tokens",
                  options.model.file.getValue());
  if (compile.binding.batch == 0)
    compile.binding.batch = 1;
  std::set<int64_t, std::greater<>> calls(options.prefill.begin(), options.prefill.end());
  for (const int64_t tokens : calls)
    if (tokens < 2 || tokens > compile.context)
      support::fail("--prefill: {} tokens a call; expected 2 to {}, the context", tokens,
                    compile.context);
  if (calls.empty())
    for (const int64_t tokens : {128, 16})
      if (tokens <= compile.context)
        calls.insert(tokens);
  if (calls.empty())
    calls.insert(compile.context);
  for (const int64_t tokens : calls)
    compile.binding.programs.push_back(fmt::format("prefill.{0}@decode:logits:S={0}", tokens));
  compile.binding.programs.emplace_back("decode@decode:logits:S=1");
}

/// Matmuls with more scales than one for each operand are features of a target.
void checkScaling(const CompileOptions &compile) {
  struct Feature {
    QuantizedScaling scaling;
    StringRef name;
    const char *what;
  };
  for (const auto &[scaling, name, what] :
       {Feature{QuantizedScaling::Row, kRowScales, "row"},
        Feature{QuantizedScaling::Block128, kBlockScales, "block of 128"}})
    if (compile.quantization.scaling == scaling &&
        !llvm::is_contained(compile.target.features, name))
      support::fail("--fp8-scaling={}: target {} has no matmuls with a scale for each {}",
                    scalingName(scaling).str(), compile.target.name, what);
}

void checkRate(const CompileOptions &compile) {
  const auto check = [&](StringRef flag, const std::string &text, support::DType type) {
    const std::string format(support::irName(type));
    if (!compile.target.matmulFlops.contains(format))
      support::fail("{}={}: target {} has no rate for matmuls in {}", flag.str(), text,
                    compile.target.name, format);
  };
  check("--precision", compile.precision, precisionPolicy(compile.precision)->format);
  for (const std::string &rule : compile.layerPrecision)
    if (const std::optional<LayerPrecision> read = LayerPrecision::parse(rule))
      check("--layer-precision", rule, read->format);
  if (precisionPolicy(compile.precision)->quantizes && compile.target.quantizedMultiple == 0)
    support::fail("--precision={}: target {} has no matmuls of 8-bit operands", compile.precision,
                  compile.target.name);
  if (precisionPolicy(compile.precision)->quantizes)
    checkScaling(compile);
}

bool HydracOptions::hasSafeForm() const {
  return isGiven(safe) ? safe != "off" : impliesSafeForm();
}

bool HydracOptions::impliesSafeForm() const {
  return !isGiven(safe) && compile.mode == Mode::Train && !explain && !isGiven(until) &&
         precisionPolicy(compile.precision)->quantizes;
}

bool HydracOptions::KernelTilesParser::parse(cl::Option &option, StringRef, StringRef text,
                                             std::string &value) {
  std::string problem;
  if (!KernelTiles::parse(text, problem))
    return rejectValue(option, text, "KERNEL:SIZE=N[,SIZE=N]...; " + problem);
  value = text.str();
  return false;
}

/// The target with what --kernel-tiles says of its kernels. Throws Error where they take no sizes.
static Target targetWithTiles(const HydracOptions &options) {
  Target target = Target::named(options.target);
  for (const std::string &text : options.kernelTiles) {
    std::string problem; // there is none: it has been parsed
    target.tiles.push_back(*KernelTiles::parse(text, problem));
    target.tiles.back().required = true;
  }
  if (!target.tiles.empty() && !backendOf(target).wants().tiles)
    support::fail("--kernel-tiles={}: kernels of target {} take no sizes",
                  target.tiles.front().text(), target.name);
  return target;
}

CompileOptions HydracOptions::compileOptions(ModelOp source) const {
  CompileOptions compile = this->compile;
  compile.target = targetWithTiles(*this);
  checkRate(compile);
  factorAtNodes(compile);
  compile.quantization.strict = true;
  compile.clip = !noClip;
  compile.holds = hasSafeForm();
  compile.update.normSpike = isGiven(normSpike);
  compile.update.batchFilter = batchFilter;
  compile.update.groupNorms = groupNorms;
  compile.update.gradHistograms = gradHistograms;
  if (!chooses())
    readRecompute(recompute, compile);
  for (const std::string &name : disabled)
    compile.disabled.insert(name);
  bool train = compile.mode == Mode::Train;
  if (compile.mode == Mode::Grad)
    compile.binding.programs = {"loss:loss"};
  else if (compile.mode == Mode::Generate)
    addGeneration(*this, source, compile);
  else if (train) {
    auto loss = source.lookupSymbol<EntryOp>("loss");
    if (loss && !loss.getReturn().getUpdated().empty() && !source.lookupSymbol<EntryOp>("eval"))
      support::fail(
          "--mode=train: @loss gives state new values, which a measurement must not; the model "
          "needs an entry @eval that does not");
    compile.binding.programs = {
        "train:loss", source.lookupSymbol<EntryOp>("eval") ? "eval@eval:eval" : "eval@eval:loss"};
  }
  readPhases(*this, compile);
  llvm::StringSet<> given;
  for (const std::string &text : programs) {
    std::string program = text;
    std::replace(program.begin(), program.end(), ',', ':'); // as hydra-bind has it
    auto [name, rest] = StringRef(program).split(':');
    given.insert(name);
    compile.binding.programs.push_back((name + roleOf(name) + ":" + rest).str());
  }
  for (EntryOp entry : source.getBody().getOps<EntryOp>()) {
    StringRef name = entry.getSymName();
    bool generates = train && name == "logits"; // one sequence at a time
    if ((compile.mode == Mode::Forward || generates) && !given.contains(name))
      compile.binding.programs.push_back(
          (name + roleOf(name) + ":" + name + (generates ? ":B=1" : "")).str());
  }
  if (compile.binding.programs.empty())
    support::fail("{}: the model has no entry, which would be a program", model.file.getValue());
  return compile;
}

static std::vector<runtime::NamedSchedule> givenScalars(const HydracOptions &options) {
  return runtime::parseSchedules({options.scalars.begin(), options.scalars.end()});
}

std::map<std::string, planfile::ScheduleT> HydracOptions::schedules() const {
  if (isGiven(warmup) && warmup > 0 && isGiven(schedule) &&
      schedule == planfile::ScheduleKind::constant)
    support::fail("--warmup: the rate of --schedule=constant has none; linear stays at its peak "
                  "behind one");
  if (isGiven(stable) && schedule != planfile::ScheduleKind::wsd)
    support::fail("--stable is for --schedule=wsd");
  planfile::ScheduleT rate;
  rate.kind = schedule;
  if (warmup > 0 && rate.kind == planfile::ScheduleKind::constant && !isGiven(schedule))
    rate.kind = planfile::ScheduleKind::linear;
  rate.peak = lr;
  rate.floor = minLr;
  rate.clamp = true; // a warm-up begins no lower
  rate.first = 1;    // so that the first step of a warm-up moves
  rate.warmup_steps = warmup;
  rate.stable_steps = schedule == planfile::ScheduleKind::wsd ? stable : 0;
  rate.total_steps = scheduleSteps;
  const int64_t before = runtime::stepsBeforeDecay(rate);
  if (runtime::decays(rate.kind) && rate.total_steps != 0 && rate.total_steps < before)
    support::fail("--schedule-steps is {}, but the decay begins after {} steps", rate.total_steps,
                  before);
  if (minLr > lr)
    support::fail("--min-lr is {}, which is above --lr, {}", minLr.getValue(), lr.getValue());
  planfile::ScheduleT norm;
  norm.peak = clip;
  planfile::ScheduleT spike;
  spike.peak = normSpike;
  std::map<std::string, planfile::ScheduleT> all;
  if (compile.mode == Mode::Train)
    all = {{"lr", rate}, {"clip", norm}, {support::kNormSpike, spike}};
  for (const runtime::NamedSchedule &given : givenScalars(*this))
    all[given.name] = given.schedule;
  return all;
}

void HydracOptions::checkScalars(const planfile::PlanT &plan) const {
  std::string names;
  for (const auto &scalar : plan.scalars)
    names += (names.empty() ? "" : ", ") + scalar->name;
  for (const runtime::NamedSchedule &given : givenScalars(*this)) {
    const auto scalar =
        llvm::find_if(plan.scalars, [&](const auto &s) { return s->name == given.name; });
    if (scalar == plan.scalars.end())
      support::fail("--scalar: no program of the plan takes '{}'{}", given.name,
                    names.empty() ? "" : "; they take " + names);
    const planfile::DType dtype = plan.tensors[(*scalar)->tensor]->dtype;
    runtime::checkType(given.name, static_cast<support::DType>(dtype), given.schedule);
  }
}

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

/// Throws Error for a report in a format that does not exist, or of a plan that is not made, before
/// any work.
static void checkReports(const HydracOptions &options) {
  if (options.reports() && (options.explain || isGiven(options.until)))
    support::fail("reports are of a whole plan; expected no --{} with them",
                  options.explain ? "explain" : "compile-to");
  if (options.explain && isGiven(options.until))
    support::fail("--explain is of whole plans; expected no --compile-to with it");
  if (options.explain && isGiven(options.output))
    support::fail("--explain prints, and writes no plan; expected no -o with it");
  checkFileNames({&options.memoryTimeline, &options.budgetPicture, &options.model.dumpPasses});
  const std::string &memory = options.memoryReport, &cost = options.costReport;
  if (isGiven(options.memoryReport) && !memory.empty() && memory != "json")
    support::fail("--memory-report is '{}'; expected json or nothing", memory);
  if (isGiven(options.costReport) && !cost.empty() && cost != "json" && cost != "markdown")
    support::fail("--cost-report is '{}'; expected json, markdown or nothing", cost);
  const std::string &kernels = options.kernelReport;
  if (isGiven(options.kernelReport) && !kernels.empty() && kernels != "json" &&
      kernels != "markdown")
    support::fail("--kernel-report is '{}'; expected json, markdown or nothing", kernels);
  const std::string &budget = options.budgetReport;
  if (isGiven(options.budgetReport) && !budget.empty() && budget != "json" && budget != "markdown")
    support::fail("--budget-report is '{}'; expected json, markdown or nothing", budget);
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

bool HydracOptions::choosesSlices() const {
  return !isGiven(exchangeBytes) && backendOf(Target::named(target)).wants().streams;
}

/// The bytes of a size such as `32GiB`. Throws Error for what is none.
static uint64_t readSize(StringRef flag, StringRef text) {
  double number = 0;
  const StringRef digits = text.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  const double unit = llvm::StringSwitch<double>(text.substr(digits.size()))
                          .Cases({"", "B"}, 1)
                          .Case("KiB", 0x1p10)
                          .Case("MiB", 0x1p20)
                          .Case("GiB", 0x1p30)
                          .Case("TiB", 0x1p40)
                          .Case("kB", 1e3)
                          .Case("MB", 1e6)
                          .Case("GB", 1e9)
                          .Case("TB", 1e12)
                          .Default(0);
  constexpr double most = 0x1p60;
  if (unit == 0 || digits.getAsDouble(number) || number * unit < 1 || number * unit > most)
    support::fail("{} is '{}'; expected a size such as 32GiB, 512MiB, 40GB or a number of bytes",
                  flag.str(), text.str());
  return static_cast<uint64_t>(number * unit);
}

uint64_t HydracOptions::memoryBudgetBytes() const {
  return isGiven(memoryBudget) ? readSize("--memory-budget", memoryBudget.getValue())
                               : Target::named(target).memoryBytes;
}

CodeFolder HydracOptions::codeFolder() const {
  return {isGiven(kernelCache) ? std::filesystem::path(kernelCache.getValue())
                               : CodeFolder::defaultPath(),
          readSize("--kernel-cache-limit", kernelCacheLimit.getValue())};
}

bool HydracOptions::chooses() const { return recompute == "auto"; }

bool HydracOptions::reports() const {
  return isGiven(memoryReport) || isGiven(costReport) || isGiven(kernelReport) ||
         !memoryTimeline.empty() || isGiven(budgetReport) || !budgetPicture.empty();
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
  if (options.programs.getNumOccurrences() > 0)
    support::fail("--mode=generate: --program is for other modes");
}

/// Throws Error where weights are to be integers and cannot be: of programs that change them, or
/// that multiply them by numbers for which there is no kernel.
static void checkWeights(const HydracOptions &options) {
  const CompileOptions &compile = options.compile;
  if (compile.weightFormat != WeightFormat::Int8) {
    if (options.weightKeep.getNumOccurrences() > 0)
      support::fail("--weight-keep is for --weight-format=int8");
    return;
  }
  if (compile.mode != Mode::Generate)
    support::fail("--weight-format=int8 is for --mode=generate: other programs multiply many rows, "
                  "or change weights");
  const support::DType format = precisionPolicy(compile.precision)->format;
  if (format == support::DType::TF32)
    support::fail("--weight-format=int8: --precision=tf32 rounds weights in each matmul; expected "
                  "another precision");
  const Target described = Target::named(options.target);
  if (format == support::DType::F32 && backendOf(described).wants().narrowInt8Rows)
    support::fail("--weight-format=int8: target {} multiplies them by rows of 16 bits; expected "
                  "--precision=bf16, f16 or pure_bf16",
                  described.name);
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
  const CompileOptions &compile = options.compile;
  if (compile.splitMaster)
    checkSplitMaster(compile);
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
  givenScalars(*this);
  checkFiles(*this);
}

} // namespace hydra
