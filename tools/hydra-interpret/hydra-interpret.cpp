// hydra-interpret: the oracle. Evaluates a program of a model in float64, operation by operation.
#include "compiler/driver/Driver.h"
#include "dialects/hydra/NumberFormats.h"
#include "passes/precision/Policy.h"
#include "runtime/plan/Schedule.h"
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/ProblemOf.h"
#include "tools/hydra-interpret/Values.h"

using namespace mlir;
using namespace hydra;
namespace cl = llvm::cl;

namespace {

constexpr llvm::StringLiteral kOverview =
    "Hydra's oracle: evaluates a program of a model in float64, operation by operation.\n\n"
    "  hydra-interpret models/cs336.mlir --preset=tiny --batch=2 --seq=32 --mode=grad \\\n"
    "      --inputs in.safetensors --outputs out.safetensors\n\n"
    "--inputs holds the inputs of the entry (tokens, labels: I32 or I64), all parameters or none,\n"
    "and any state (F32 or F64). What it lacks starts from its initialiser; without --inputs the\n"
    "tokens are random, in --mode=train other ones for each micro-batch. --outputs receives, as "
    "F64 (integers as I32):\n"
    "  --mode=forward  what the entry returns\n"
    "  --mode=grad     loss, grad.<parameter>, and states that the model updates\n"
    "  --mode=train    losses [N+1] (before each of N updates, and after the last), all "
    "parameters\n"
    "                  and all state; with --inputs every batch is the given one\n"
    "With --mesh several ranks run it together, each with its rows of the batch; --inputs and "
    "--outputs\n"
    "hold the whole batch, and what must be the same on all ranks is checked to be.\n"
    "Without --outputs the losses, or one line a tensor, are printed. A model may be a template "
    "or\n"
    "the text after any pass (--dump-passes): what was done to it is not done again.\n";

struct Options {
  ProgramOptions program;
  ModelOptions model{program, "forward, or what passes have made of the entry"};
  cl::OptionCategory own{"Evaluation"};
  cl::opt<std::string> entry{"entry", cl::value_desc("NAME"), cl::cat(own),
                             cl::desc("what to evaluate (default: loss, or the first entry)")};
  cl::opt<std::string> inputs{"inputs", cl::value_desc("FILE"), cl::cat(own),
                              cl::desc("a safetensors file to start from (default: none)")};
  cl::opt<std::string> outputs{"outputs", cl::value_desc("FILE"), cl::cat(own),
                               cl::desc("the safetensors file to write (default: print)")};
  SwitchOption round{
      "round", cl::cat(own),
      cl::desc("round each result to its type, as a low-precision run would (default: off)")};
  SeedOption seed{"seed", cl::value_desc("N"), cl::cat(own), cl::init(0),
                  cl::desc("of initial parameters and random tokens (default: 0)")};
  IntegerOption<0, kMostSteps> steps{"steps", cl::value_desc("N"), cl::cat(own), cl::init(1),
                                     cl::desc("updates in --mode=train (default: 1)")};
  MagnitudeOption lr{"lr", cl::value_desc("X"), cl::cat(own), cl::init(1e-3),
                     cl::desc("learning rate in --mode=train (default: 0.001)")};
  MagnitudeOption clip{
      "clip", cl::value_desc("X"), cl::cat(own), cl::init(0.0),
      cl::desc("gradient norm to clip to in --mode=train (default: 0, which is none)")};

  cl::list<std::string> scalars{
      "scalar", cl::value_desc("NAME=VALUE[,after=STEPS][,over=STEPS][,levels=N]"), cl::cat(own),
      cl::desc(
          "a number that the model takes every step: 0 for so many steps, then VALUE, over so many "
          "steps by so many levels; repeatable (default: what the model says)")};

  /// The first given flag that has a meaning in training only; null if there is none.
  const cl::Option *trainingFlag() const {
    for (const cl::Option *o :
         {static_cast<const cl::Option *>(&steps), static_cast<const cl::Option *>(&lr),
          static_cast<const cl::Option *>(&clip), static_cast<const cl::Option *>(&model.accum),
          static_cast<const cl::Option *>(&model.accumExchange),
          static_cast<const cl::Option *>(&model.average)})
      if (o->getNumOccurrences() > 0)
        return o;
    return nullptr;
  }
};

/// One run of the tool, from the model file to the results.
class Interpretation {
public:
  explicit Interpretation(const Options &options) : options(options), driver(options.model) {}

  LogicalResult run() {
    options.model.checkQuantization();
    options.model.checkLogits();
    options.model.checkGradients();
    if (options.program.gradients == GradientFormat::BF16 && !options.program.binding.mesh.empty())
      support::fail("--gradients=bf16 rounds what ranks send, which is not interpreted; leave out "
                    "--mesh");
    checkLayerPrecision(options.program);
    options.model.checkExchange();
    checkFileNames({&options.inputs, &options.outputs, &options.model.dumpPasses});
    support::checkOutputs({{"the model", options.model.file}, {"--inputs", options.inputs}},
                          {{"--outputs", options.outputs}});
    if (failed(driver.load()) || failed(chooseEntry()) || failed(chooseMode()) ||
        failed(compile()) || failed(giveValues()))
      return failure();
    {
      TimingScope scope = driver.time("Interpreter");
      if (failed(mode == Mode::Train ? train() : evaluateOnce()))
        return failure();
    }
    if (failed(driver.verdict()))
      return failure();
    if (options.outputs.empty())
      printOutput(tensorsText(results()));
    else
      writeTensors(options.outputs, results());
    announceRandomValues();
    return success();
  }

private:
  LogicalResult chooseEntry() {
    ModelOp model = driver.model();
    SmallVector<EntryOp> entries = llvm::filter_to_vector(model.getBody().getOps<EntryOp>(),
                                                          [](EntryOp e) { return e.isProgram(); });
    std::string names;
    for (EntryOp e : entries)
      names += (names.empty() ? "" : ", ") + e.getSymName().str();
    bool given = options.entry.getNumOccurrences() > 0;
    StringRef name = given ? StringRef(options.entry) : "loss";
    entry = model.lookupSymbol<EntryOp>(name);
    const auto *first =
        llvm::find_if(entries, [](EntryOp e) { return e.programRole() != ProgramRole::count; });
    if (!entry && !given && first != entries.end())
      entry = *first;
    if (entry)
      return success();
    return model.emitError() << "model @" << model.getSymName() << " has no entry '" << name
                             << "'; it has: " << (names.empty() ? "none" : names);
  }

  /// What the entry is already, if it is no longer a forward program.
  std::optional<Mode> stageMode() {
    if (!entry.getStage())
      return std::nullopt;
    return *entry.getStage() == ProgramStage::grad ? Mode::Grad : Mode::Train;
  }

  LogicalResult chooseMode() {
    std::optional<Mode> stage = stageMode();
    mode = options.model.mode.getNumOccurrences() > 0 ? options.program.mode
                                                      : stage.value_or(Mode::Forward);
    StringRef name = entry.getSymName();
    if (stage && mode < *stage) {
      return entry.emitError() << "entry @" << name << " is a "
                               << stringifyProgramStage(*entry.getStage())
                               << " program already; --mode is " << modeName(mode) << ", expected "
                               << (*stage == Mode::Grad ? "grad or train" : "train");
    }
    if (const cl::Option *flag = options.trainingFlag(); flag && mode != Mode::Train)
      support::fail("--{} is for --mode=train; the mode is {}", flag->ArgStr.str(),
                    modeName(mode).str());
    if (mode == Mode::Forward && !options.program.tuning.freeze.empty())
      support::fail("--freeze is for --mode=train and --mode=grad, which have gradients");
    if (entry.programRole() == ProgramRole::apply) {
      return entry.emitError() << "entry @" << name
                               << " is the second half of a training step; expected the first, "
                                  "an accumulate program";
    }
    if (entry.programRole() == ProgramRole::count) {
      return entry.emitError() << "entry @" << name
                               << " counts the labels of a training step; expected what trains, "
                                  "an accumulate program";
    }
    if (entry.programRole() == ProgramRole::accumulate &&
        options.model.accum.getNumOccurrences() == 0) {
      return entry.emitError() << "entry @" << name
                               << " is a part of an update; say with "
                                  "--accum=N how many micro-batches it was made for";
    }
    if (entry.programRole() == ProgramRole::train && options.program.accumulation > 1)
      return entry.emitError() << "entry @" << name
                               << " updates after every batch; expected --accum=1";
    if (stage == Mode::Train && options.model.average.getNumOccurrences() > 0)
      return entry.emitError() << "entry @" << name
                               << " has its updates already; --average is for what gets them";
    if (driver.model().isBound() &&
        (options.model.given() || options.model.precision.getNumOccurrences() > 0 ||
         options.model.layerPrecision.getNumOccurrences() > 0 || options.program.tuning.any())) {
      return driver.model().emitError()
             << "model @" << driver.model().getSymName()
             << " is bound already; --preset, --set, --batch, --seq, --mesh, --routing, --freeze, "
                "--lora, --precision and --layer-precision are for templates";
    }
    return success();
  }

  /// The first program of that role; null if there is none.
  static EntryOp programOf(ModelOp model, ProgramRole role) {
    for (EntryOp entry : model.getBody().getOps<EntryOp>())
      if (entry.programRole() == role)
        return entry;
    return {};
  }

  /// Runs the passes that are missing between the file and what the mode asks for.
  LogicalResult compile() {
    std::string name = entry.getSymName().str();
    auto stage = entry.getStage();
    const PrecisionPolicy &policy = *precisionPolicy(options.program.precision);
    std::vector<std::string> training;
    if (hasBackward(mode))
      training = {name};
    LogicalResult compiled = driver.run([&](OpPassManager &passes) {
      if (!driver.model().isBound()) {
        BindingOptions binding = options.program.binding;
        binding.programs = {name + ":" + name};
        buildForwardPipeline(passes, binding, options.program.tuning, training);
      } else {
        if (!driver.model().getBody().getOps<StackOp>().empty())
          passes.addPass(createUnrollLayers());
        if (!stage)
          passes.addPass(createApplyDropout(dropoutOptions(training)));
      }
      if (!stage) {
        if (!options.program.layerPrecision.empty())
          passes.addPass(
              createSelectPrecision(selectPrecisionOptions(options.program.layerPrecision)));
        if (policy.quantizes)
          passes.addPass(
              createSelectQuantized(selectQuantizedOptions(options.program.quantization)));
        buildTrainingPipeline(passes, mode, {name}, options.program.accumulation, /*clip=*/true,
                              policy.scalesLoss, options.program.update,
                              options.program.gradients);
        if (!options.program.binding.mesh.empty())
          passes.addPass(createPartition());
      } else if (*stage == ProgramStage::grad && mode == Mode::Train) {
        passes.addPass(createOptimizer(optimizerOptions({name}, options.program.accumulation,
                                                        /*clip=*/true, options.program.update)));
      }
      if (policy.format != support::DType::F32)
        passes.addPass(createMixedPrecision(mixedPrecisionOptions(options.program)));
      if (policy.quantizes) {
        QuantizeMatmulsOptions quantize =
            quantizeMatmulsOptions(options.program.quantization, options.program.accumulation);
        quantize.strict = true;
        passes.addPass(createQuantizeMatmuls(quantize));
      }
    });
    if (failed(compiled))
      return failure();
    ModelOp model = driver.model();
    EntryOp first = model.lookupSymbol<EntryOp>(name);
    if (!first) // the optimizer has split it
      first = programOf(model, ProgramRole::accumulate);
    programs = {first};
    if (first.programRole() != ProgramRole::accumulate)
      return success();
    EntryOp apply = programOf(model, ProgramRole::apply);
    if (!apply) {
      return first.emitError() << "model @" << model.getSymName()
                               << " has no program 'apply' that uses what @" << first.getSymName()
                               << " accumulates";
    }
    programs.push_back(apply);
    if (auto before = dyn_cast_or_null<EntryOp>(first->getPrevNode());
        before && before.programRole() == ProgramRole::count)
      counter = before;
    return success();
  }

  /// Refuses what cannot be held before anything is drawn or read.
  LogicalResult checkMemory() {
    double bytes = 0;
    for (const Slot &slot : slots)
      bytes += oracleBytes(slot.type.getShape());
    if (bytes <= static_cast<double>(machineMemory()))
      return success();
    return programs.front().emitOpError() << "has inputs, parameters and state of "
                                          << static_cast<int64_t>(std::min(bytes, 0x1p62))
                                          << " bytes as f64; this machine has " << machineMemory();
  }

  LogicalResult giveValues() {
    slots = slotsOf(programs);
    if (failed(checkMemory()))
      return failure();
    if (options.inputs.empty())
      drawInputs(slots, options.seed, 0, values);
    else
      values = readTensors(options.inputs, slots);
    toHeldForm(driver.model(), values);
    drawn = llvm::any_of(slots, [&](const Slot &s) {
      return s.kind == Slot::Kind::Parameter && !values.contains(s.name);
    });
    FailureOr<TensorMap> initial = initialValues(driver.model(), options.seed);
    if (failed(initial))
      return failure();
    for (auto &item : *initial)
      values.try_emplace(item.getKey(), std::move(item.getValue()));
    for (StateOp state : driver.model().getBody().getOps<StateOp>())
      if (state.getRole() == VariableRole::copy)
        giveCopy(state);
    giveScalar("lr", options.lr);
    giveScalar("clip", options.clip);
    schedules = runtime::parseSchedules({options.scalars.begin(), options.scalars.end()});
    for (const runtime::NamedSchedule &given : schedules) {
      const auto slot = llvm::find_if(slots, [&](const Slot &s) {
        return s.kind == Slot::Kind::Scalar && s.name == given.name;
      });
      if (slot == slots.end())
        support::fail("--scalar: the program takes no number '{}'", given.name);
      runtime::checkType(given.name, *formatOf(slot->type.getElementType()), given.schedule);
      if (values.contains(given.name))
        support::fail("{}: tensor '{}' is also given as --scalar; expected one of them",
                      options.inputs.getValue(), given.name);
    }
    setScalars(0);
    for (const Slot &slot : slots)
      if (slot.kind == Slot::Kind::Scalar)
        values.try_emplace(slot.name, ArrayRef<int64_t>(), slot.value);
    for (EntryOp program : driver.model().getBody().getOps<EntryOp>())
      if (program.programRole() == ProgramRole::derive && failed(run(program)))
        return failure();
    return success();
  }

  LogicalResult evaluateOnce() {
    EntryOp program = programs.front();
    FailureOr<TensorMap> computed = interpretBatch(program, values, {options.round});
    if (failed(computed))
      return failure();
    outputs = std::move(*computed);
    for (StringRef name : program.getReturn().getOutputNames().getAsValueRange<StringAttr>())
      shown.push_back(name.str());
    forEachUpdated(program, [&](const std::string &name) { shown.push_back(name); });
    return success();
  }

  LogicalResult train() {
    RefTensor losses;
    for (int64_t n = 0; n <= options.steps; ++n) {
      const bool last = n == options.steps; // evaluated only
      const int64_t batches = last ? 1 : options.program.accumulation;
      losses.data.push_back(0.0);
      // What losses divide by is known before the first micro-batch; of one alone, its own labels.
      for (int64_t i = 0; counter && i < options.program.accumulation; ++i) {
        draw(n * options.program.accumulation + (last ? 0 : i));
        if (failed(run(counter)))
          return failure();
      }
      for (int64_t i = 0; i < batches; ++i) {
        draw(n * options.program.accumulation + i);
        setCounted(planfile::ScheduleKind::micro_batch, static_cast<double>(i));
        FailureOr<TensorMap> step = interpretBatch(programs.front(), values, {options.round});
        if (failed(step))
          return failure();
        losses.data[n] += (*step)["loss"].data[0] / static_cast<double>(batches);
        if (!last)
          takeUpdates(programs.front(), *step);
      }
      if (!last && programs.size() > 1 && failed(run(programs.back())))
        return failure();
      setScalars(n + 1);
    }
    losses.shape = {losses.size()};
    toGivenForm(driver.model(), values);
    outputs = std::move(values);
    outputs["losses"] = std::move(losses);
    shown.push_back("losses");
    if (!options.outputs.empty()) {
      for (const Slot &slot : slots)
        if (isVariable(slot))
          shown.push_back(slot.name);
    }
    return success();
  }

  /// Runs a program of which only the updates count.
  LogicalResult run(EntryOp program) {
    FailureOr<TensorMap> results = interpretBatch(program, values, {options.round});
    if (failed(results))
      return failure();
    takeUpdates(program, *results);
    return success();
  }

  /// Random inputs of that number, unless a file has given them.
  void draw(int64_t number) {
    if (options.inputs.empty())
      drawInputs(slots, options.seed, number, values);
  }

  void takeUpdates(EntryOp program, TensorMap &results) {
    forEachUpdated(program,
                   [&](const std::string &name) { values[name] = std::move(results[name]); });
  }

  /// Names of the tensors that a program gives new values of parameters and state as.
  static void forEachUpdated(EntryOp program, llvm::function_ref<void(const std::string &)> take) {
    auto model = program->getParentOfType<ModelOp>();
    for (auto symbol : program.getReturn().getUpdated().getAsRange<FlatSymbolRefAttr>())
      for (const auto &[name, type] : tensorsOf(model.lookupSymbol(symbol.getAttr())))
        take(name);
  }

  /// A copy is what it is made of, rounded.
  void giveCopy(StateOp state) {
    const auto owners = tensorsOf(driver.model().lookupSymbol(*state.getOwner()));
    for (const auto &[copy, owner] : llvm::zip_equal(tensorsOf(state), owners)) {
      RefTensor rounded = values[owner.first];
      roundTo(rounded, copy.second.getElementType());
      values[copy.first] = std::move(rounded);
    }
  }

  static bool isVariable(const Slot &slot) {
    return slot.kind == Slot::Kind::Parameter || slot.kind == Slot::Kind::State;
  }

  /// The numbers of a step, from 0, that have a schedule, and those that are drawn for it.
  void setScalars(int64_t step) {
    for (const runtime::NamedSchedule &given : schedules)
      values[given.name] =
          RefTensor(ArrayRef<int64_t>(), runtime::scheduleValue(given.schedule, step));
    const runtime::DrawKey key = runtime::drawKey(options.seed, step);
    setCounted(planfile::ScheduleKind::draw_low, key.low);
    setCounted(planfile::ScheduleKind::draw_high, key.high);
  }

  /// A number that runs count or draw: it has the name of its schedule.
  void setCounted(planfile::ScheduleKind kind, double value) {
    const char *const name = planfile::EnumNameScheduleKind(kind);
    if (llvm::any_of(slots,
                     [&](const Slot &s) { return s.kind == Slot::Kind::Scalar && s.name == name; }))
      values[name] = RefTensor(ArrayRef<int64_t>(), value);
  }

  /// A run-time scalar from its flag, if that is given.
  void giveScalar(StringRef name, const MagnitudeOption &flag) {
    if (flag.getNumOccurrences() == 0)
      return;
    if (llvm::none_of(slots, [&](const Slot &s) { return s.name == name; }))
      support::fail("--{}: the program takes no number '{}'", name.str(), name.str());
    if (values.contains(name))
      support::fail("{}: tensor '{}' is also given as --{}; expected one of them",
                    options.inputs.getValue(), name.str(), name.str());
    values.try_emplace(name, ArrayRef<int64_t>(), flag.getValue());
  }

  /// One line on stderr, once there are results, about what did not come from a file.
  void announceRandomValues() {
    if (options.inputs.empty()) {
      printProblem(llvm::Twine("no --inputs: random tokens and initial parameters of seed ") +
                   llvm::Twine(options.seed));
    } else if (drawn) {
      printProblem(llvm::Twine(options.inputs) + " has no parameters: initial ones of seed " +
                   llvm::Twine(options.seed));
    }
  }

  NamedTensors results() const {
    NamedTensors list;
    for (const std::string &name : shown) {
      const auto slot = llvm::find_if(slots, [&](const Slot &s) { return s.name == name; });
      const bool integer = slot != slots.end() && slot->kind == Slot::Kind::State &&
                           slot->type.getElementType().isInteger(32);
      list.push_back({name, &outputs.find(name)->second, integer});
    }
    return list;
  }

  const Options &options;
  Driver driver;
  EntryOp entry;
  Mode mode = Mode::Forward;
  std::vector<runtime::NamedSchedule> schedules;
  SmallVector<EntryOp> programs; ///< the one, or accumulate and apply
  EntryOp counter;               ///< what runs before accumulate, if anything does
  std::vector<Slot> slots;
  bool drawn = false; ///< whether parameters are not given
  TensorMap values;
  TensorMap outputs;
  std::vector<std::string> shown; ///< names of results, in their order
};

} // namespace

int main(int argc, char **argv) {
  static Options options;
  if (!parseCommandLine(argc, argv, kOverview, {&options.model.category, &options.own}))
    return 1;
  try {
    return succeeded(Interpretation(options).run()) ? 0 : 1;
  } catch (const std::exception &error) {
    printProblem(support::problemOf(error));
  }
  return 1;
}
