// What the flags of hydrac mean for a model.
#include "tools/hydrac/Options.h"

#include "compiler/Backends.h"
#include "compiler/TwoLevel.h"
#include "passes/precision/Policy.h"
#include "runtime/support/Error.h"
#include "runtime/support/NormSpike.h"

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

/// The programs that the mode, --phase and --program ask for. Throws Error for a model that has not
/// the entries for them.
static void addPrograms(const HydracOptions &options, ModelOp source, CompileOptions &compile) {
  bool train = compile.mode == Mode::Train;
  if (compile.mode == Mode::Grad)
    compile.binding.programs = {"loss:loss"};
  else if (compile.mode == Mode::Generate)
    addGeneration(options, source, compile);
  else if (train) {
    auto loss = source.lookupSymbol<EntryOp>("loss");
    if (loss && !loss.getReturn().getUpdated().empty() && !source.lookupSymbol<EntryOp>("eval"))
      support::fail(
          "--mode=train: @loss gives state new values, which a measurement must not; the model "
          "needs an entry @eval that does not");
    compile.binding.programs = {
        "train:loss", source.lookupSymbol<EntryOp>("eval") ? "eval@eval:eval" : "eval@eval:loss"};
  }
  readPhases(options, compile);
  llvm::StringSet<> given;
  for (const std::string &text : options.programs) {
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
    support::fail("{}: the model has no entry, which would be a program",
                  options.model.file.getValue());
}

/// Matmuls with more scales than one for each operand are features of a target.
static void checkScaling(const CompileOptions &compile) {
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
  addPrograms(*this, source, compile);
  return compile;
}

std::vector<runtime::NamedSchedule> HydracOptions::givenScalars() const {
  return runtime::parseSchedules({scalars.begin(), scalars.end()});
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
  for (const runtime::NamedSchedule &given : givenScalars())
    all[given.name] = given.schedule;
  return all;
}

void HydracOptions::checkScalars(const planfile::PlanT &plan) const {
  std::string names;
  for (const auto &scalar : plan.scalars)
    names += (names.empty() ? "" : ", ") + scalar->name;
  for (const runtime::NamedSchedule &given : givenScalars()) {
    const auto scalar =
        llvm::find_if(plan.scalars, [&](const auto &s) { return s->name == given.name; });
    if (scalar == plan.scalars.end())
      support::fail("--scalar: no program of the plan takes '{}'{}", given.name,
                    names.empty() ? "" : "; they take " + names);
    const planfile::DType dtype = plan.tensors[(*scalar)->tensor]->dtype;
    runtime::checkType(given.name, static_cast<support::DType>(dtype), given.schedule);
  }
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

} // namespace hydra
