// What a session is made of: programs, batches, first values; and what it tells of itself.
#include "runtime/run/Session.h"

#include "runtime/plan/Mesh.h"
#include "runtime/plan/Schedule.h"
#include "runtime/run/FirstValues.h"
#include "runtime/run/TensorHashes.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"
#include "runtime/support/OutputNames.h"
#include "runtime/support/Shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
using hydra::support::kAppliedOutput;
using hydra::support::kGradNormOutput;
using hydra::support::kLossLabelsOutput;
using hydra::support::kLossOutput;
using hydra::support::kLossSumOutput;
using hydra::support::shown;
using hydra::support::shownPath;

namespace {

/// The seed of a run, which a resumed one takes from its checkpoint.
SessionOptions withSeed(SessionOptions options) {
  if (!options.resume)
    return options;
  const uint64_t saved = options.resume->state().seed;
  if (options.seed.value_or(saved) != saved)
    fail("{}: made with --seed {}, not {}", shownPath(options.resume->path()), saved,
         *options.seed);
  options.seed = saved;
  return options;
}

/// All scalars that runs do not count or draw can be given.
bool canBeGiven(const Scalar &scalar) { return !isCounted(scalar.schedule()->kind()); }

/// Scalars that the file of inputs holds are the same in every step.
std::map<std::string, ScheduleChange>
withGivenScalars(const Plan &plan, const GivenTensors *given,
                 std::map<std::string, ScheduleChange> changes) {
  for (const Scalar *scalar : *plan.scalars()) {
    const std::string name = scalar->name()->str();
    if (!given || !given->has(name) || !canBeGiven(*scalar))
      continue;
    if (changes.contains(name))
      fail("{}: tensor '{}' is also given by a flag; expected one of them", given->path(),
           shown(name));
    const Tensor &tensor = *plan.tensors()->Get(scalar->tensor());
    double value = 0.0;
    hydra::support::toDoubles(dtypeOf(tensor), given->values(name, tensor), std::span(&value, 1));
    changes[name].whole.emplace().peak = value;
  }
  return changes;
}

const SavedSchedules *savedSchedules(const SessionOptions &options) {
  const bool saved = options.resume && options.resume->state().scalars;
  return saved ? &*options.resume->state().scalars : nullptr;
}

std::vector<int64_t> endsOfPhases(const Plan &plan) {
  std::vector<int64_t> ends;
  if (plan.phases())
    for (const hydra::planfile::TrainingPhase *phase : *plan.phases())
      ends.push_back(static_cast<int64_t>(phase->last_step()));
  return ends;
}

std::string dataOf(const SessionOptions &options) {
  return options.text     ? options.text->identity()
         : options.inputs ? "given inputs"
                          : randomTokensText(options.ids);
}

} // namespace

/// The program of a plan that does not train: the first, or of those that read on the one that adds
/// a token.
static uint32_t mainProgram(const Plan &plan) {
  const auto &programs = *plan.programs();
  uint32_t main = 0;
  for (uint32_t i = 1; i < programs.size(); ++i)
    if (programs.Get(i)->role() == ProgramRole::decode &&
        tokensPerRun(plan, *programs.Get(i)) < tokensPerRun(plan, *programs.Get(main)))
      main = i;
  return main;
}

Session::Session(const PlanFile &file, Executor &executor, const SessionOptions &sessionOptions)
    : file(file), executor(executor), options(withSeed(sessionOptions)),
      given(options.inputs ? std::make_unique<GivenTensors>(*options.inputs) : nullptr),
      scalars(file.plan(), withGivenScalars(file.plan(), given.get(), options.scalars),
              options.steps, savedSchedules(options), seed()),
      gathered(file, executor, options.ranks), data(dataOf(options)),
      trainPlan(isTrainPlan(file.plan())) {
  if (options.resume) {
    const TrainingState &saved = options.resume->state();
    if (options.steps > 0 && saved.data != data)
      fail("{}: trained on {}, not {}", shownPath(options.resume->path()), shown(saved.data), data);
    step = formSince = firstStep = saved.step;
    counted = saved.counts;
    guarded = saved.safety;
  }
  if (trainPlan) {
    const bool saved = options.resume && options.resume->state().policies;
    policies.emplace(options.policies, saved ? &*options.resume->state().policies : nullptr,
                     scalars, endsOfPhases(file.plan()));
  }
  if (trainPlan)
    makeTrainingParts();
  else
    parts.push_back(makePart(mainProgram(file.plan()), false, nullptr));
  setValues();
  scalars.write(executor, step); // also for who only generates
}

std::vector<hydra::data::Epochs> Session::epochs() const {
  if (!options.text)
    return {};
  const Plan &plan = file.plan();
  std::vector<TextSource::Trained> trained;
  int64_t begin = 0;
  const auto until = [&](int64_t end, uint32_t program) {
    end = std::min(end, step);
    if (begin < end)
      trained.push_back({plan.programs()->Get(program),
                         static_cast<uint64_t>(end - begin) * plan.accumulation()});
    begin = std::max(begin, end);
  };
  if (plan.phases() && policies) {
    const std::vector<int64_t> ends = policies->phaseEnds();
    for (uint32_t i = 0; i < plan.phases()->size(); ++i)
      until(ends[i], plan.phases()->Get(i)->program());
  }
  if (const std::optional<uint32_t> main = mainTrainingProgram(plan))
    until(step, *main);
  return options.text->epochs(trained);
}

void Session::makeStepParts() {
  const Plan &plan = file.plan();
  int64_t begin = 0;
  early.clear();
  // Each with batches of its own shape, from that of its first step on, or of the next one.
  const auto part = [&](uint32_t program) {
    const uint64_t first = static_cast<uint64_t>(std::max(step, begin)) * plan.accumulation();
    std::unique_ptr<BatchSource> source =
        options.text ? options.text->training(*plan.programs()->Get(program), first) : nullptr;
    Part made = makePart(program, true, source.get(), plan.accumulation());
    made.source = std::move(source);
    return made;
  };
  if (plan.phases())
    for (const planfile::TrainingPhase *phase : *plan.phases()) {
      const int64_t last = static_cast<int64_t>(phase->last_step()) - policies->stepsSaved();
      if (step < last)
        early.push_back({last, part(phase->program())});
      begin = last;
    }
  const std::optional<uint32_t> main = mainTrainingProgram(plan);
  if (!main)
    fail("{}: a train plan, but it has no program {}", file.origin(),
         plan.accumulation() == 1 ? "train" : "accumulate");
  Part made = part(*main);
  if (parts.empty())
    parts.push_back(std::move(made));
  else
    parts.front() = std::move(made);
  takeForm(parts.front());
  for (EarlyPart &phase : early)
    takeForm(phase.part);
}

void Session::makeTrainingParts() {
  const Plan &plan = file.plan();
  makeStepParts();
  if (plan.accumulation() > 1)
    parts.push_back(makePart(programOf(ProgramRole::apply, "apply"), false, nullptr));
  const uint32_t measuring = programOf(ProgramRole::eval, "eval");
  eval = makePart(measuring, true, options.text ? &options.text->heldOut() : nullptr);
  for (const EvaluationSet &set : options.evaluationSets)
    measuredSets.push_back(makePart(measuring, true, &set.text->heldOut()));
}

void Session::setValues() {
  if (given) {
    std::set<std::string, std::less<>> known;
    for (const Variable *variable : *file.plan().variables())
      if (isSaved(*variable))
        known.insert(variable->name()->str());
    for (const Program *program : *file.plan().programs())
      for (const Input *input : *program->inputs())
        known.insert(input->name()->str());
    for (const Scalar *scalar : *file.plan().scalars())
      if (canBeGiven(*scalar))
        known.insert(scalar->name()->str());
    given->checkNames(known);
  }
  if (options.resume)
    options.resume->restore(executor, options.ranks);
  else if (hasValues())
    setFirstValues();
  if (options.averages) {
    useAverages(file, executor, rank(), GivenTensors(*options.averages));
    checkHashes(*options.averages, ".average", options.ranks, /*speaks=*/rank() == 0);
  }
  if (options.runs)
    deriveVariables(file.plan(), executor);
}

void Session::setFirstValues() {
  std::optional<GivenTensors> weights;
  if (options.weights) {
    weights.emplace(*options.weights);
    std::set<std::string, std::less<>> known;
    for (const Variable *variable : *file.plan().variables())
      if (isSaved(*variable))
        known.insert(variable->name()->str());
    weights->checkNames(known);
    if (!hasParameters(file, *weights))
      fail("{}: has no parameter of {}", weights->path(), file.origin());
    checkHashes(*options.weights, {}, options.ranks, /*speaks=*/rank() == 0);
  }
  std::optional<AdapterFile> adapter;
  if (options.adapter)
    adapter.emplace(*options.adapter, file);
  drawsAdapters =
      weights && !adapter && adapterScaleOf(file.plan()) && !hasAdapters(file, *weights);
  setVariables(file, executor, rank(), weights ? &*weights : given.get(), seed(),
               adapter ? &*adapter : nullptr);
}

uint32_t Session::programOf(ProgramRole role, std::string_view name) const {
  const auto &programs = *file.plan().programs();
  for (flatbuffers::uoffset_t i = 0; i < programs.size(); ++i)
    if (programs.Get(i)->role() == role)
      return i;
  fail("{}: a train plan, but it has no program {}", file.origin(), name);
}

Session::Form Session::formOf(uint32_t index) const {
  const Plan &plan = file.plan();
  const Program &program = *plan.programs()->Get(index);
  Form form{.program = index};
  for (const Output *output : *program.outputs()) {
    const std::string_view name = output->name()->string_view();
    if (trainPlan && name == kGradNormOutput)
      form.gradientNorm = output->tensor();
    if (trainPlan && name == kAppliedOutput)
      form.applied = output->tensor();
    const bool isNumber = plan.tensors()->Get(output->tensor())->shape()->size() == 0;
    if (name == kLossOutput && isNumber)
      form.loss = output->tensor();
    if (name == kLossLabelsOutput && isNumber)
      form.labels = output->tensor();
    if (trainPlan && plan.mesh() && plan.accumulation() > 1 && name == kLossSumOutput) {
      form.loss = output->tensor();
      form.sumsLosses = true;
    }
  }
  for (const int64_t one : {form.loss, form.labels, form.gradientNorm, form.applied})
    if (one >= 0)
      form.read.push_back(static_cast<uint32_t>(one));
  for (const Output *output : *program.outputs())
    if (told && StepOutputs::tells(plan, *output))
      form.read.push_back(output->tensor());
  const bool counts = index > 0 && program.role() == ProgramRole::accumulate &&
                      plan.programs()->Get(index - 1)->role() == ProgramRole::count;
  if (counts)
    form.count = int64_t{index} - 1;
  return form;
}

Session::Form Session::formOf(uint32_t program, ProgramForm which) const {
  const Form own = formOf(program);
  const std::optional<uint32_t> other = programInForm(file.plan(), program, which);
  if (!other || *other == program)
    return own;
  Form form = formOf(*other);
  if (own.count >= 0) // of role custom in all other forms
    form.count = programInForm(file.plan(), static_cast<uint32_t>(own.count), which)
                     .value_or(static_cast<uint32_t>(own.count));
  return form;
}

Session::Part Session::makePart(uint32_t index, bool needsLoss, BatchSource *source,
                                uint64_t runs) {
  const Plan &plan = file.plan();
  const Program &program = *plan.programs()->Get(index);
  Part part;
  static_cast<Form &>(part) = formOf(index);
  if (needsLoss && part.loss < 0)
    fail("{}: program {} has no scalar output loss", file.origin(),
         shown(program.name()->string_view()));
  part.tokens = tokensPerRun(plan, program);
  part.own = index;
  std::vector<Batch> batches;
  for (uint64_t i = 0; i < (source ? runs : 1); ++i)
    batches.push_back(source  ? Batch(plan, program, *source)
                      : given ? Batch(plan, program, *given, rank())
                              : Batch(plan, program, seed(), rank(), options.ids));
  part.batches = StepBatches(std::move(batches));
  return part;
}

const Session::Part &Session::partOf(int64_t number) const {
  for (const EarlyPart &phase : early)
    if (number < phase.lastStep)
      return phase.part;
  return parts.front();
}

Cost Session::costOf(const Part &part) const {
  const auto &programs = *file.plan().programs();
  const Cost &one = *programs.Get(part.program)->cost();
  const uint64_t runs = file.plan().accumulation();
  const Cost last = parts.size() > 1 ? *programs.Get(parts[1].program)->cost() : Cost();
  const Cost count =
      part.count >= 0 ? *programs.Get(static_cast<uint32_t>(part.count))->cost() : Cost();
  const uint64_t ranks = ranksOf(file.plan());
  return {ranks * (runs * (count.flops() + one.flops()) + last.flops()),
          ranks * (runs * (count.bytes() + one.bytes()) + last.bytes()),
          static_cast<double>(runs) * (count.microseconds() + one.microseconds()) +
              last.microseconds()};
}

double Session::microsecondsUntil(int64_t last) const {
  int64_t number = step;
  double sum = 0;
  const auto add = [&](const Part &part, int64_t end) {
    sum += static_cast<double>(std::max<int64_t>(0, end - number)) * costOf(part).microseconds();
    number = std::max(number, end);
  };
  for (const EarlyPart &phase : early)
    add(phase.part, std::min(phase.lastStep, last));
  add(parts.front(), last);
  return sum;
}

uint64_t Session::tokens() const { return nextPart().tokens * file.plan().accumulation(); }

void Session::readStepOutputs() {
  told.emplace(file.plan());
  for (Part &part : parts)
    takeForm(part);
  for (EarlyPart &phase : early)
    takeForm(phase.part);
}

std::vector<Session::SmallOutput> Session::smallOutputs() const {
  const bool forward = isForwardPlan(file.plan());
  const int64_t most = forward ? 256 : 1;
  const size_t dimensions = forward ? 2 : 0;
  std::vector<SmallOutput> outputs;
  for (const Output *output : *file.plan().programs()->Get(parts[0].program)->outputs()) {
    const Tensor &tensor = *file.plan().tensors()->Get(output->tensor());
    const BatchPart part(file.plan(), tensor, output->batch_dimension(), rank());
    if (part.wholeShape().size() > dimensions || part.wholeElements() > most)
      continue;
    const std::vector<std::byte> bytes = gathered.output(*output);
    const support::DType dtype = dtypeOf(tensor);
    std::vector<double> numbers(bytes.size() / support::byteSize(dtype));
    support::toDoubles(dtype, bytes, numbers);
    if (!numbers.empty())
      outputs.push_back({output->name()->str(), part.wholeShape(), std::move(numbers)});
  }
  return outputs;
}

std::string Session::note(bool readsBatches) const {
  std::vector<std::string> drawn;
  if (readsBatches && !options.text && !given)
    drawn.emplace_back(randomTokensText(options.ids));
  if (!options.resume && !options.weights && (!given || !hasParameters(file, *given)))
    drawn.emplace_back("initial parameters");
  if (drawsAdapters)
    drawn.emplace_back("initial adapters");
  return drawn.empty() ? "" : fmt::format("{} of seed {}", fmt::join(drawn, " and "), seed());
}

bool Session::drawsValues(bool readsBatches) const {
  const auto isDrawn = [](const Scalar *scalar) {
    const planfile::ScheduleKind kind = scalar->schedule()->kind();
    return kind == planfile::ScheduleKind::draw_low || kind == planfile::ScheduleKind::draw_high;
  };
  return !note(readsBatches).empty() ||
         (readsBatches && std::ranges::any_of(*file.plan().scalars(), isDrawn));
}

uint64_t Session::nextBatch() const {
  return static_cast<uint64_t>(step) * file.plan().accumulation();
}

TrainingState Session::state() const {
  TrainingState state{.step = step,
                      .seed = seed(),
                      .data = data,
                      .schedules = {},
                      .counts = counted,
                      .safety = guarded};
  for (const auto &[name, words] : scalars.describe())
    state.schedules[name] = words;
  state.scalars = scalars.save(step);
  if (policies)
    state.policies = policies->save();
  return state;
}
