// hydrac: compiles a model to a plan.
#include "compiler/PlanPipeline.h"
#include "compiler/codegen/cuda/KernelCache.h"
#include "compiler/driver/Driver.h"
#include "compiler/driver/NamedFiles.h"
#include "compiler/emit/EmitPlan.h"
#include "compiler/lowering/LibraryLowering.h"
#include "compiler/targets/Target.h"
#include "compiler/targets/TargetBackend.h"

#include "passes/precision/Policy.h"
#include "runtime/calls/CheckCalls.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Schedule.h"
#include "runtime/report/CostReport.h"
#include "runtime/report/MemoryReport.h"
#include "runtime/report/Units.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "tools/hydrac/Explain.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"

#include <fmt/ranges.h>

using namespace hydra;
using namespace mlir;
namespace cl = llvm::cl;
using llvm::StringRef;

namespace {

constexpr llvm::StringLiteral kOverview =
    "Compiles a model to a plan for hydra-run.\n\n"
    "  hydrac models/cs336.mlir --preset=tiny --batch=2 --seq=32 -o plan.fb\n"
    "  hydrac models/llama.mlir --preset=tiny --batch=2 --seq=32 --mode=grad -o grad.fb\n"
    "  hydrac models/cs336.mlir --preset=xl --batch=4 --seq=512 --memory-report -o xl.fb\n";

/// What becomes of the rows that a router leaves out.
enum class Routing { Dynamic, Masked, Static };

const char *routingName(Routing routing) {
  return routing == Routing::Dynamic ? "dynamic" : routing == Routing::Masked ? "masked" : "static";
}

struct Options : ModelOptions {
  Options() : ModelOptions("train") {}

  cl::opt<std::string> output{"o", cl::value_desc("FILE"), cl::cat(category),
                              cl::desc("where the plan goes (default: plan.fb; with a report: "
                                       "no plan)"),
                              cl::init("plan.fb")};
  cl::opt<std::string> target{
      "target", cl::value_desc("NAME|FILE.json"), cl::cat(category),
      cl::desc(
          "what the plan is for: cpu (this machine), x86-64-v3, x86-64-v4, h200, rtx5090, or a "
          "description (default: cpu)"),
      cl::init("cpu")};
  ChoiceOption<CompilePhase> until{
      "compile-to", cl::cat(category), cl::init(CompilePhase::Plan),
      cl::desc("stop after a phase and write the program as text (default: compile to the end)"),
      cl::values(
          clEnumValN(CompilePhase::Bind, "bind", "static types, straight-line layers"),
          clEnumValN(CompilePhase::Differentiate, "differentiate", "backward pass and updates"),
          clEnumValN(CompilePhase::Group, "group", "groups of row-wise operations"),
          clEnumValN(CompilePhase::Place, "place", "views, copies and order"),
          clEnumValN(CompilePhase::Plan, "plan", "buffers, steps and offsets"))};
  cl::list<std::string> disabled{"disable-pass", cl::value_desc("NAME,..."), cl::cat(category),
                                 cl::CommaSeparated,
                                 cl::desc("leave passes out (default: none); see --list-passes")};
  SwitchOption listPasses{"list-passes", cl::cat(category),
                          cl::desc("print all passes in order and end")};
  IntegerOption<0, 2> level{"O",
                            cl::Prefix,
                            cl::value_desc("0|1|2"),
                            cl::cat(category),
                            cl::init(2),
                            cl::desc("0: only what is needed, 1: simplification and views, 2: "
                                     "everything (default: 2)")};
  SwitchOption noClip{"no-clip", cl::cat(category),
                      cl::desc("leave the global norm of gradients out of the program; "
                               "--clip is then impossible, here and in hydra-run")};
  cl::opt<std::string> precision{
      "precision", cl::value_desc("fp32|tf32|bf16|f16|pure_bf16"), cl::cat(category),
      cl::init("fp32"),
      cl::desc(
          "what numbers are held in: f32; f32 with matmuls in tf32; matmuls and attention of bf16 "
          "or f16 numbers, the rest f32; parameters and optimizer state in bf16 too (default: "
          "fp32)")};
  SwitchOption reducedReduction{
      "bf16-reduced-precision-reduction", cl::cat(category),
      cl::desc("products of bf16 numbers may add partial sums in bf16 where the library then is "
               "faster (default: sums in f32)")};
  ChoiceOption<AttentionForm> attention{
      "attention", cl::cat(category), cl::init(AttentionForm::Flash),
      cl::desc("how attention is computed (default: flash)"),
      cl::values(
          clEnumValN(AttentionForm::Flash, "flash", "without ever holding the scores"),
          clEnumValN(AttentionForm::Naive, "naive", "by products and a softmax over all scores"))};
  IntegerOption<0> sideMultiprocessors{
      "side-multiprocessors", cl::value_desc("N"), cl::cat(category), cl::init(0),
      cl::desc(
          "for a GPU: multiprocessors that gradients of parameters, which are computed beside the "
          "backward pass, may count on; 0: all (default: 0)")};
  ChoiceOption<Routing> routing{
      "routing", cl::cat(category), cl::init(Routing::Dynamic),
      cl::desc("how work follows what routers of the model say (default: dynamic)"),
      cl::values(clEnumValN(Routing::Dynamic, "dynamic",
                            "work on rows that take part follows their number, on the device"),
                 clEnumValN(Routing::Masked, "masked", "the same values by work on all rows"),
                 clEnumValN(Routing::Static, "static",
                            "soft routing of all rows: every choice of the model that can be "
                            "'static' is, unless --set says otherwise; another gradient"))};
  IntegerOption<0> ceChunk{"ce-chunk", cl::value_desc("ROWS"), cl::cat(category), cl::init(0),
                           cl::desc("rows whose logits exist at a time; 0: as many as 64 MiB hold, "
                                    "on a GPU 1 GiB (default: 0)")};
  cl::opt<std::string> recompute{
      "recompute", cl::value_desc("none|light|rowwise|[rowwise,]every=N"), cl::cat(category),
      cl::init("light"),
      cl::desc("what the backward pass makes again in place of keeping it: nothing; rotary "
               "positions; also norms and gated activations, for some more traffic; all of each "
               "N-th layer, for its forward pass once more, in the others rotary positions or as "
               "rowwise does (default: light)")};
  IntegerOption<1> scanCheckpoint{
      "scan-checkpoint", cl::value_desc("K"), cl::cat(category), cl::init(1),
      cl::desc(
          "keep what a scan carries for the backward pass only every K chunks, and carry it again "
          "between (default: 1, all of it)")};
  cl::list<std::string> programs{
      "program", cl::value_desc("NAME:ENTRY[,DIM=VALUE]..."), cl::cat(category),
      cl::desc("a program of the plan and the entry it runs, with entry dimensions of its own; "
               "repeatable (default: what --mode needs; with train also logits:logits,B=1)")};
  cl::list<std::string> phases{
      "phase", cl::value_desc("STEPS:SETTING[,SETTING]..."), cl::cat(category),
      cl::desc(
          "so many first steps of training with other choices and flags of the model, as a program "
          "of its own; repeatable, one phase after the other (default: none)")};
  cl::list<std::string> scalars{
      "scalar", cl::value_desc("NAME=VALUE[,after=STEPS][,over=STEPS][,levels=N]"),
      cl::cat(category),
      cl::desc(
          "a number that the model takes every step: 0 for so many steps, then VALUE, over so many "
          "steps by so many levels; repeatable (default: what the model says)")};
  ChoiceOption<planfile::ScheduleKind> schedule{
      "schedule", cl::cat(category), cl::init(planfile::ScheduleKind::constant),
      cl::desc("how the learning rate goes in --mode=train (default: constant)"),
      cl::values(clEnumValN(planfile::ScheduleKind::constant, "constant", "the same at every step"),
                 clEnumValN(planfile::ScheduleKind::linear, "linear", "constant after a warm-up"),
                 clEnumValN(planfile::ScheduleKind::cosine, "cosine", "falls to --min-lr"),
                 clEnumValN(planfile::ScheduleKind::wsd, "wsd",
                            "stays for --stable steps, then falls to --min-lr"))};
  MagnitudeOption lr{"lr", cl::value_desc("RATE"), cl::cat(category), cl::init(1e-3),
                     cl::desc("largest learning rate (default: 0.001)")};
  MagnitudeOption minLr{"min-lr", cl::value_desc("RATE"), cl::cat(category), cl::init(0.0),
                        cl::desc("learning rate at the end of cosine and wsd (default: 0)")};
  IntegerOption<0, kMostSteps> warmup{"warmup", cl::value_desc("N"), cl::cat(category), cl::init(0),
                                      cl::desc("steps of linear warm-up (default: 0)")};
  IntegerOption<0, kMostSteps> stable{
      "stable", cl::value_desc("N"), cl::cat(category), cl::init(-1),
      cl::desc("wsd: steps at the largest rate (default: 85% of those after "
               "the warm-up)")};
  IntegerOption<1, kMostSteps> scheduleSteps{
      "schedule-steps", cl::value_desc("N"), cl::cat(category), cl::init(0),
      cl::desc("last step of cosine and wsd (default: that of the "
               "run)")};
  MagnitudeOption clip{"clip", cl::value_desc("NORM"), cl::cat(category), cl::init(0.0),
                       cl::desc("bound of the global norm of gradients; 0: none (default: 0)")};
  cl::opt<std::string> memoryReport{
      "memory-report", cl::ValueOptional, cl::value_desc("json"), cl::cat(category),
      cl::desc("print the peak of memory, what for, and the largest buffers, as text or JSON")};
  cl::opt<std::string> memoryTimeline{
      "memory-timeline", cl::value_desc("FILE.csv|FILE.json"), cl::cat(category),
      cl::desc("write the live bytes of every block of every program (default: off)")};
  cl::opt<std::string> costReport{
      "cost-report", cl::ValueOptional, cl::value_desc("json"), cl::cat(category),
      cl::desc("print FLOPs, bytes and roofline time by phase, class and layer, as text or JSON")};
  SwitchOption allowOversize{"allow-oversize", cl::cat(category),
                             cl::desc("write a plan that does not fit the memory of its target")};
  SwitchOption explain{"explain", cl::cat(category),
                       cl::desc("print what steps, memory and predicted time would be without "
                                "each pass, and end")};
  cl::opt<std::string> kernelCache{
      "kernel-cache", cl::value_desc("DIR"), cl::cat(category),
      cl::desc("where compiled GPU kernels are kept; empty: nowhere (default: hydra in the user's "
               "folder of caches)")};
  SwitchOption timing{"timing", cl::cat(category), cl::desc("print where compile time went")};
};

/// Throws Error for anything that --recompute does not take.
void readRecompute(StringRef text, CompileOptions &compile) {
  const std::string whole = text.str();
  auto readEvery = [&](StringRef number) {
    if (number.getAsInteger(10, compile.replayEvery) || compile.replayEvery < 1)
      support::fail("--recompute=every={}: expected a positive integer", number.str());
  };
  if (text.consume_front("every="))
    return readEvery(text);
  if (text.consume_front("rowwise,every=")) {
    readEvery(text);
    text = "rowwise";
  }
  if (text != "none" && text != "light" && text != "rowwise")
    support::fail("--recompute is '{}'; expected none, light, rowwise, every=N or rowwise,every=N",
                  whole);
  compile.recompute = text == "none"    ? Recomputation::None
                      : text == "light" ? Recomputation::Light
                                        : Recomputation::Rowwise;
}

/// The programs of --phase, each from the entry `loss`. Throws Error for what is no phase.
void readPhases(const Options &options, CompileOptions &compile) {
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

/// `CHOICE=static` for every choice of the model that can be that. Throws Error when there is none.
std::vector<std::string> staticChoices(ModelOp model) {
  std::vector<std::string> settings;
  for (SymbolsOp symbols : model.getBody().getOps<SymbolsOp>())
    for (auto [name, options] : llvm::zip(symbols.getNames(), symbols.getOptions()))
      if (auto list = dyn_cast<ArrayAttr>(options);
          list && llvm::is_contained(list.getAsValueRange<StringAttr>(), "static"))
        settings.push_back((cast<StringAttr>(name).getValue() + "=static").str());
  if (settings.empty())
    support::fail("--routing=static: no choice of this model can be 'static'");
  return settings;
}

/// Entries whose names say what a run does with them, as hydra-bind has it.
StringRef roleOf(StringRef program) {
  return program == "logits" ? "@generate" : program == "eval" ? "@eval" : "";
}

CompileOptions compileOptions(const Options &options, const Target &target, ModelOp model) {
  CompileOptions compile;
  compile.target = target;
  compile.binding = options.binding();
  if (options.routing == Routing::Static) {
    auto settings = staticChoices(model); // what --set says comes later and wins
    compile.binding.settings.insert(compile.binding.settings.begin(), settings.begin(),
                                    settings.end());
  }
  compile.mode = options.givenMode().value_or(Mode::Train);
  compile.accumulation = options.accum;
  compile.clip = !options.noClip;
  compile.level = options.level;
  readRecompute(options.recompute, compile);
  compile.scanCheckpoint = options.scanCheckpoint;
  compile.ceChunk = options.ceChunk;
  compile.precision = options.precision;
  if (const std::string_view format = support::irName(precisionPolicy(options.precision)->format);
      !target.matmulFlops.contains(std::string(format)))
    support::fail("--precision={}: target {} has no rate for matmuls in {}",
                  options.precision.getValue(), target.name, format);
  compile.reducedReduction = options.reducedReduction;
  compile.attention = options.attention;
  compile.sideMultiprocessors = options.sideMultiprocessors;
  compile.until = options.until;
  for (const std::string &name : options.disabled)
    compile.disabled.insert(name);
  if (options.routing == Routing::Masked)
    compile.disabled.insert("hydra-skip-rows");
  bool train = compile.mode == Mode::Train;
  if (compile.mode == Mode::Grad)
    compile.binding.programs = {"loss:loss"};
  else if (train) {
    auto loss = model.lookupSymbol<EntryOp>("loss");
    if (loss && !loss.getReturn().getUpdated().empty() && !model.lookupSymbol<EntryOp>("eval"))
      support::fail(
          "--mode=train: @loss gives state new values, which a measurement must not; the model "
          "needs an entry @eval that does not");
    compile.binding.programs = {
        "train:loss", model.lookupSymbol<EntryOp>("eval") ? "eval@eval:eval" : "eval@eval:loss"};
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
  for (EntryOp entry : model.getBody().getOps<EntryOp>()) {
    StringRef name = entry.getSymName();
    bool generates = train && name == "logits"; // one sequence at a time
    if ((compile.mode == Mode::Forward || generates) && !given.contains(name))
      compile.binding.programs.push_back(
          (name + roleOf(name) + ":" + name + (generates ? ":B=1" : "")).str());
  }
  if (compile.binding.programs.empty())
    support::fail("{}: the model has no entry, which would be a program", options.file.getValue());
  return compile;
}

std::vector<runtime::NamedSchedule> givenScalars(const Options &options) {
  return runtime::parseSchedules({options.scalars.begin(), options.scalars.end()});
}

/// Schedules of the scalars that a train plan has.
std::map<std::string, planfile::ScheduleT> schedulesOf(const Options &options) {
  planfile::ScheduleT lr;
  lr.kind = options.schedule;
  lr.peak = options.lr;
  lr.floor = options.minLr;
  lr.first = 1; // so that the first step of a warm-up moves
  lr.warmup_steps = options.warmup;
  lr.stable_steps = options.schedule == planfile::ScheduleKind::wsd ? options.stable : 0;
  lr.total_steps = options.scheduleSteps;
  const int64_t before = runtime::stepsBeforeDecay(lr);
  if (runtime::decays(lr.kind) && lr.total_steps != 0 && lr.total_steps < before)
    support::fail("--schedule-steps is {}, but the decay begins after {} steps", lr.total_steps,
                  before);
  planfile::ScheduleT clip;
  clip.peak = options.clip;
  std::map<std::string, planfile::ScheduleT> schedules;
  if (options.givenMode().value_or(Mode::Train) == Mode::Train)
    schedules = {{"lr", lr}, {"clip", clip}};
  for (const runtime::NamedSchedule &given : givenScalars(options))
    schedules[given.name] = given.schedule;
  return schedules;
}

/// Throws Error for a number given to a plan that takes none of that name.
void checkScalars(const Options &options, const planfile::PlanT &plan) {
  std::string names;
  for (const auto &scalar : plan.scalars)
    names += (names.empty() ? "" : ", ") + scalar->name;
  for (const runtime::NamedSchedule &given : givenScalars(options))
    if (llvm::none_of(plan.scalars, [&](const auto &s) { return s->name == given.name; }))
      support::fail("--scalar: no program of the plan takes '{}'{}", given.name,
                    names.empty() ? "" : "; they take " + names);
}

/// Throws Error for a name that is no pass, or one that cannot be left out.
void checkDisabled(const Options &options) {
  std::vector<PassEntry> passes = pipelinePasses();
  for (const std::string &name : options.disabled) {
    auto it = llvm::find_if(passes, [&](const PassEntry &p) { return p.name == name; });
    if (it == passes.end())
      support::fail("--disable-pass: there is no pass '{}'; see --list-passes", name);
    if (it->required)
      support::fail("--disable-pass: '{}' is needed to make a plan", name);
  }
}

/// Throws Error where a flag asks for what -O or --disable-pass takes away.
void checkPassFlags(const Options &options) {
  auto needs = [&](const std::string &flag, const std::string &pass, unsigned level) {
    if (options.level < level)
      support::fail("{} needs {}, which -O{} leaves out", flag, pass, options.level.getValue());
    if (llvm::is_contained(options.disabled, pass))
      support::fail("{} needs {}, which --disable-pass leaves out", flag, pass);
  };
  if (options.recompute.getNumOccurrences() > 0 && options.recompute != "none")
    needs("--recompute=" + options.recompute.getValue(), kRecomputePass.str(), 2);
  if (options.scanCheckpoint > 1)
    needs("--scan-checkpoint", "hydra-nest-loops", 0);
  if (options.attention == AttentionForm::Naive)
    needs("--attention=naive", "hydra-decompose-attention", 0);
}

/// Throws Error for flags about precision that mean nothing.
void checkPrecision(const Options &options) {
  const std::string &precision = options.precision;
  const PrecisionPolicy *policy = precisionPolicy(precision);
  if (!policy)
    support::fail("--precision is '{}'; expected {}", precision, precisionPolicyNames());
  if (options.reducedReduction && policy->format != support::DType::BF16)
    support::fail("--bf16-reduced-precision-reduction needs --precision=bf16 or pure_bf16");
}

void printPasses() {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::StringSet<> seen;
  for (const PassEntry &pass : pipelinePasses())
    if (seen.insert(pass.name).second)
      out << llvm::left_justify(pass.name, 24)
          << llvm::left_justify(pass.required ? "required" : "", 10) << pass.summary << '\n';
  printOutput(text);
}

void writeFile(const std::string &path, const std::string &text) {
  support::AtomicFile file(path);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
}

void writeText(const std::string &path, ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  if (path == "-")
    printOutput(text);
  else
    writeFile(path, text);
}

bool asked(const cl::opt<std::string> &report) { return report.getNumOccurrences() > 0; }

/// Throws Error for a report in a format that does not exist, before any work.
void checkReports(const Options &options) {
  for (auto [flag, format] : {std::pair("memory-report", &options.memoryReport),
                              std::pair("cost-report", &options.costReport)})
    if (asked(*format) && !format->empty() && *format != "json")
      support::fail("--{} is '{}'; expected json or nothing", flag, format->getValue());
  StringRef timeline = options.memoryTimeline.getValue();
  if (!timeline.empty() && !timeline.ends_with(".csv") && !timeline.ends_with(".json"))
    support::fail("--memory-timeline: '{}' ends neither in .csv nor in .json", timeline.str());
}

/// Throws Error where a file would be written over one that is read, or over another.
void checkFiles(const Options &options) {
  const bool reports =
      asked(options.memoryReport) || asked(options.costReport) || !options.memoryTimeline.empty();
  const bool written = options.output.getNumOccurrences() > 0 ||
                       !(reports || options.explain || options.until.getNumOccurrences() > 0);
  const std::string none;
  const bool described = StringRef(options.target.getValue()).ends_with(".json");
  checkOutputs(
      {{"the model", options.file}, {"--target", described ? options.target.getValue() : none}},
      {{"-o", written ? options.output.getValue() : none},
       {"--memory-timeline", options.memoryTimeline}});
}

/// Throws Error for a plan that its target has no memory for.
void checkFits(const Options &options, const CompileOptions &compile, const planfile::PlanT &plan) {
  uint64_t needed = 0;
  for (const auto &segment : plan.segments)
    needed += segment.size();
  const uint64_t there = compile.target.memoryBytes;
  if (needed <= there || options.allowOversize)
    return;
  std::vector<std::string> helps = {"a smaller --batch or --seq"};
  if (compile.mode != Mode::Forward && compile.replayEvery == 0)
    helps.emplace_back("--recompute=every=1");
  if (!precisionPolicy(compile.precision)->holdsValues())
    helps.emplace_back("--precision=bf16");
  helps.emplace_back("or --allow-oversize, to write it all the same");
  support::fail("the plan needs {}, {} more than the {} of {}; what helps: {}",
                report::bytesText(needed), report::bytesText(needed - there),
                report::bytesText(there), compile.target.name, fmt::join(helps, ", "));
}

/// Whether any report was asked for.
bool printReports(const Options &options, const planfile::PlanT &content) {
  const std::string &timeline = options.memoryTimeline;
  if (!asked(options.memoryReport) && !asked(options.costReport) && timeline.empty())
    return false;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(planfile::Plan::Pack(builder, &content));
  const auto &plan = *flatbuffers::GetRoot<planfile::Plan>(builder.GetBufferPointer());
  if (asked(options.memoryReport))
    printOutput(options.memoryReport == "json" ? report::memoryReportJson(plan)
                                               : report::memoryReportText(plan));
  if (asked(options.costReport))
    printOutput(options.costReport == "json" ? report::costJson(plan) : report::costText(plan));
  if (!timeline.empty())
    writeFile(timeline, StringRef(timeline).ends_with(".json") ? report::memoryTimelineJson(plan)
                                                               : report::memoryTimelineCsv(plan));
  return true;
}

/// What a plan says of its origin, before there is code.
EmitOptions emitOptions(const Options &options, const CompileOptions &compile,
                        const Target &target) {
  EmitOptions emit;
  emit.producer = "hydrac 0.1";
  emit.modelFile = options.file;
  emit.precision = compile.precision;
  emit.mode = modeName(compile.mode).str();
  emit.target = target;
  emit.schedules = schedulesOf(options);
  emit.phases = compile.phases;
  emit.accumulation = compile.mode == Mode::Train ? compile.accumulation : 1;
  emit.options = {{"mode", emit.mode},
                  {"target", options.target},
                  {"O", std::to_string(compile.level)},
                  {"accum", std::to_string(compile.accumulation)},
                  {"clip", compile.clip ? "true" : "false"},
                  {"attention", compile.attention == AttentionForm::Naive ? "naive" : "flash"},
                  {"recompute", options.recompute},
                  {"scan-checkpoint", std::to_string(compile.scanCheckpoint)},
                  {"routing", routingName(options.routing)},
                  {"side-multiprocessors", std::to_string(compile.sideMultiprocessors)},
                  {"ce-chunk", std::to_string(compile.ceChunk)}};
  if (compile.reducedReduction)
    emit.options.emplace_back("bf16-reduced-precision-reduction", "true");
  for (const std::string &name : options.disabled)
    emit.options.emplace_back("disable-pass", name);
  return emit;
}

plan::PlanModuleOp planOf(ModuleOp module) { return *module.getOps<plan::PlanModuleOp>().begin(); }

LogicalResult explain(const Options &options, const Target &target) {
  return printExplanation(
      [&](const std::string &without) -> FailureOr<std::unique_ptr<planfile::PlanT>> {
        Driver driver(options);
        if (failed(driver.load()))
          return failure();
        CompileOptions compile = compileOptions(options, target, driver.model());
        if (!without.empty())
          compile.disabled.insert(without);
        std::vector<std::string> passes;
        if (failed(driver.run(
                [&](OpPassManager &manager) { passes = buildPlanPipeline(manager, compile); })))
          return failure();
        EmitOptions emit = emitOptions(options, compile, target);
        emit.passes = passes;
        auto plan = emitPlan(planOf(driver.module()), emit);
        if (failed(plan) || failed(driver.verdict()))
          return failure();
        checkScalars(options, **plan);
        return plan;
      });
}

LogicalResult run(Options &options) {
  const Target target = Target::named(options.target);
  checkDisabled(options);
  checkReports(options);
  checkPrecision(options);
  if (options.noClip && options.clip > 0)
    support::fail("--clip and --no-clip exclude each other");
  checkPassFlags(options);
  givenScalars(options); // before any work
  checkFiles(options);
  if (options.explain)
    return explain(options, target);
  Driver driver(options, options.timing);
  if (failed(driver.load()))
    return failure();
  CompileOptions compile = compileOptions(options, target, driver.model());
  std::vector<std::string> passes;
  if (failed(driver.run(
          [&](OpPassManager &manager) { passes = buildPlanPipeline(manager, compile); })))
    return failure();
  if (options.until.getNumOccurrences() > 0) {
    writeText(options.output.getNumOccurrences() ? options.output.getValue() : "-",
              driver.module());
    return success();
  }
  plan::PlanModuleOp module = planOf(driver.module());
  EmitOptions emit = emitOptions(options, compile, target);
  emit.passes = passes;
  auto outline = emitPlan(module, emit);
  if (failed(outline) || failed(driver.verdict()))
    return failure();
  checkScalars(options, **outline);
  if (printReports(options, **outline) && options.output.getNumOccurrences() == 0)
    return success();
  checkFits(options, compile, **outline);
  // From here on no flag may be read: linking kernels in the process resets all of them.
  std::string output = options.output, cache = options.kernelCache;
  if (options.kernelCache.getNumOccurrences() == 0)
    cache = cuda::KernelCache::defaultDirectory();
  TimingScope scope = driver.time("Code generation");
  FailureOr<CompiledKernels> kernels =
      TargetBackend::named(target.kind).compileKernels(module, target, {.cache = cache});
  if (failed(kernels))
    return failure();
  emit.code = std::move(*kernels);
  auto content = emitPlan(module, emit);
  if (failed(content) || failed(driver.verdict()))
    return failure();
  const runtime::PlanFile plan =
      runtime::PlanFile::parse(runtime::encodePlan(**content), output);
  runtime::checkCalls(plan.plan()); // what an executor would refuse is not written
  runtime::writePlan(output, plan);
  return success();
}

} // namespace

int main(int argc, char **argv) {
  static Options options;
  if (!parseCommandLine(argc, argv, kOverview, {&options.category}))
    return 1;
  try {
    if (options.listPasses) {
      printPasses();
      return 0;
    }
    return failed(run(options));
  } catch (const std::bad_alloc &) {
    printProblem("there is not enough memory to compile this model");
  } catch (const std::exception &error) {
    printProblem(error.what());
  }
  return 1;
}
