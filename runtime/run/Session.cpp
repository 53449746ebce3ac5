// Steps and calls, and the files they leave.
#include "runtime/run/Session.h"

#include "runtime/plan/Mesh.h"
#include "runtime/plan/Schedule.h"
#include "runtime/run/BadValue.h"
#include "runtime/run/FirstValues.h"
#include "runtime/run/TensorHashes.h"
#include "runtime/run/Variables.h"
#include "runtime/support/Error.h"
#include "runtime/support/LossLimit.h"
#include "runtime/support/OutputNames.h"
#include "runtime/support/Shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <span>
#include <utility>

using namespace hydra::runtime;
using namespace hydra::planfile;
using hydra::support::fail;
using hydra::support::kAppliedOutput;
using hydra::support::kGradNormOutput;
using hydra::support::kLossLimit;
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
    if (name == kLossOutput && plan.tensors()->Get(output->tensor())->shape()->size() == 0)
      form.loss = output->tensor();
    if (trainPlan && plan.mesh() && plan.accumulation() > 1 && name == kLossSumOutput) {
      form.loss = output->tensor();
      form.sumsLosses = true;
    }
  }
  for (const int64_t one : {form.loss, form.gradientNorm, form.applied})
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

Cost Session::cost() const {
  const auto &programs = *file.plan().programs();
  const Cost &one = *programs.Get(nextPart().program)->cost();
  const uint64_t runs = file.plan().accumulation();
  const Cost last = parts.size() > 1 ? *programs.Get(parts[1].program)->cost() : Cost();
  const int64_t counting = nextPart().count;
  const Cost count =
      counting >= 0 ? *programs.Get(static_cast<uint32_t>(counting))->cost() : Cost();
  const uint64_t ranks = ranksOf(file.plan());
  return {ranks * (runs * (count.flops() + one.flops()) + last.flops()),
          ranks * (runs * (count.bytes() + one.bytes()) + last.bytes()),
          static_cast<double>(runs) * (count.microseconds() + one.microseconds()) +
              last.microseconds()};
}

uint64_t Session::tokens() const { return nextPart().tokens * file.plan().accumulation(); }

void Session::countLabels(Part &part, bool drawn) {
  const Program &program = *file.plan().programs()->Get(static_cast<uint32_t>(part.count));
  const uint64_t runs = file.plan().accumulation(), ahead = part.batches.size();
  for (uint64_t i = 0; i < runs; ++i) {
    if (i % ahead == 0 && !drawn)
      part.batches.draw(nextBatch() + i);
    sound = false;
    part.batches[i % ahead].write(executor, program);
    executor.run(static_cast<uint32_t>(part.count));
  }
}

std::string Session::drawAhead(int64_t number) {
  if (!options.text)
    return "";
  StepBatches &next = nextPart().batches, &wanted = partAt(number).batches;
  next.take(step);
  try {
    // Behind a phase that ended early no step has been read for yet.
    if (number > step && !next.areOf(step)) {
      next.draw(nextBatch());
      next.keepFor(step);
    }
    if (!wanted.areOf(number)) // for a trial of it
      wanted.drawBeside(number);
  } catch (const support::Error &error) {
    return error.what();
  }
  return "";
}

void Session::startPart(const Part &part, uint64_t batch, int64_t number) {
  part.batches[batch].write(executor, *file.plan().programs()->Get(part.program));
  try {
    executor.start(part.program, part.read);
  } catch (const BadValue &bad) {
    if (!trainPlan)
      throw;
    fail("step {}: {}", number + 1, bad.what());
  }
}

double Session::endPart(const Part &part, double *seconds) {
  const double took = executor.finish();
  if (seconds)
    *seconds = took;
  return part.loss < 0 ? 0.0 : gathered.scalar(static_cast<uint32_t>(part.loss));
}

double Session::runPart(const Part &part, uint64_t batch) {
  startPart(part, batch, step);
  return endPart(part);
}

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

bool Session::leavesLabelsOut() const {
  // Drawn ids leave no label out.
  return trainPlan && (options.text ? options.text->leavesLabelsOut() : given != nullptr);
}

double Session::makeRuns(Part &part, bool drawnAhead) {
  const uint64_t runs = file.plan().accumulation(), ahead = part.batches.size();
  // In f32, one after the other: so do ranks, and what is told has the same bits.
  float loss = 0.0F;
  const bool counts = leavesLabelsOut();
  int64_t labels = 0;
  if (part.count >= 0)
    countLabels(part, drawnAhead);
  // All of them are there still.
  const bool drawn = drawnAhead || (part.count >= 0 && ahead == runs);
  const uint64_t most = executor.startsAhead(part.program) ? 1 : 0; // beside one that is started
  uint64_t inFlight = 0;
  const auto end = [&] {
    --inFlight;
    const auto added = static_cast<float>(endPart(part));
    loss = part.sumsLosses ? added : loss + added;
    if (told)
      told->add(executor, *file.plan().programs()->Get(part.program));
  };
  try {
    for (uint64_t i = 0; i < runs; ++i) {
      // Those of files all before the first run: one that cannot be read is met between two steps.
      if (i % ahead == 0 && !drawn)
        part.batches.draw(nextBatch() + i);
      sound = false;
      if (inFlight > most)
        end();
      scalars.writeMicroBatch(executor, i);
      startPart(part, i % ahead, step);
      ++inFlight;
      if (counts)
        labels += part.batches[i % ahead].countedLabels().value_or(1);
    }
    while (inFlight > 0)
      end();
  } catch (...) {
    for (; inFlight > 0; --inFlight)
      drain();
    throw;
  }
  if (parts.size() > 1) {
    runPart(parts[1], 0);
    if (told)
      told->addUpdate(executor, *file.plan().programs()->Get(parts[1].program));
  }
  labelled = !counts || anyLabel(labels);
  return double{loss} / static_cast<double>(runs);
}

bool Session::anyLabel(int64_t own) const {
  if (!options.ranks)
    return own > 0;
  const std::byte has{own > 0};
  std::byte any{0};
  for (const std::vector<std::byte> &theirs : options.ranks->gather(std::span(&has, 1)))
    any |= theirs.front();
  return options.ranks->broadcast(std::span(&any, 1)).front() != std::byte{0};
}

bool Session::beginsAhead(int64_t number) const {
  const Part &part = partOf(number);
  // Whoever reads on needs the token that a run has drawn.
  if (file.plan().programs()->Get(part.program)->role() == ProgramRole::decode)
    return false;
  return executor.startsAhead(part.program) && !options.ranks && file.plan().accumulation() == 1 &&
         part.count < 0 && (!policies || policies->flags().empty());
}

void Session::begin(int64_t number) {
  Part &part = partAt(number);
  part.batches.take(number);
  if (!part.batches.areOf(number))
    part.batches.draw(static_cast<uint64_t>(number));
  Begun one{.part = &part};
  one.drawSeconds = part.batches.takeSeconds();
  one.drawn = Clock::now();
  if (leavesLabelsOut())
    one.labelled = part.batches[0].countedLabels().value_or(1) > 0;
  scalars.write(executor, number);
  scalars.writeMicroBatch(executor, 0);
  mayHaveRun = true;
  sound = false;
  startPart(part, 0, number);
  mayHaveRun = false;
  one.started = Clock::now();
  begun = one;
}

void Session::beginBeside(int64_t number) {
  try {
    begin(number);
  } catch (...) {
    beginError = std::current_exception();
  }
}

void Session::drain() {
  try {
    executor.finish();
  } catch (const support::Error &) {
    // What led here is said.
  }
}

void Session::drainBegun() {
  if (!std::exchange(begun, std::nullopt))
    return;
  sound = false;
  drain();
}

double Session::advance(bool goesOn) {
  if (beginError)
    std::rethrow_exception(std::exchange(beginError, nullptr));
  if (told)
    told->clear();
  if (!begun && !beginsAhead(step)) {
    if (policies)
      policies->begin(step, scalars);
    scalars.write(executor, step);
    Part &part = nextPart();
    part.batches.take(step);
    const double loss = makeRuns(part, part.batches.areOf(step));
    waited = part.batches.takeSeconds();
    return takeStep(part, loss);
  }
  const bool isAlone = !begun;
  if (isAlone)
    begin(step);
  const Begun now = *std::exchange(begun, std::nullopt);
  waited = isAlone ? now.drawSeconds : 0.0;
  sound = false;
  try {
    // Not behind a step that may be one bad one too many.
    if (goesOn && counted.skippedInARow + 1 < options.maxBadSteps && beginsAhead(step + 1))
      beginBeside(step + 1);
    return endStep(now);
  } catch (...) {
    drainBegun();
    throw;
  }
}

double Session::endStep(const Begun &now) {
  double seconds = 0;
  const double loss = static_cast<float>(endPart(*now.part, &seconds));
  if (begun) { // how long the device waited for a batch that was drawn beside its run
    const std::chrono::duration<double> beside = begun->drawn - std::max(now.started, lastEnd);
    waited += std::clamp(beside.count() - seconds, 0.0, begun->drawSeconds);
  }
  lastEnd = Clock::now();
  labelled = now.labelled;
  if (told)
    told->add(executor, *file.plan().programs()->Get(now.part->program));
  return takeStep(*now.part, loss);
}

double Session::takeStep(const Part &part, double loss) {
  stepLoss = loss;
  const Part &updating = parts.size() > 1 ? parts[1] : part;
  const int64_t normTensor = updating.gradientNorm;
  previousNorm = norm;
  norm.reset();
  if (normTensor >= 0)
    norm = gathered.scalar(static_cast<uint32_t>(normTensor));
  count(loss, tokens());
  const int64_t stepsSaved = policies ? policies->stepsSaved() : 0;
  if (policies)
    decided = labelled ? policies->takeStep(step, loss, norm, scalars) : "";
  ++step;
  refused.reset();
  if (updating.applied >= 0 && gathered.scalar(static_cast<uint32_t>(updating.applied)) == 0.0)
    noteRefusal(loss);
  else if (trainPlan) {
    counted.skippedInARow = 0;
    checkFinite("loss", loss);
    checkFinite("gradient norm", norm.value_or(0.0));
  }
  sound = !mayHaveRun;
  if (policies && policies->stepsSaved() != stepsSaved)
    makeStepParts();
  return trainPlan ? loss : 0.0;
}

void Session::count(double loss, uint64_t tokens) {
  constexpr double memory = 0.9; // of the mean
  counted.tokens += tokens;
  if (labelled && std::isfinite(loss))
    meanLoss = meanLoss ? memory * *meanLoss + (1 - memory) * loss : loss;
  if (const double clip = scalars.value("clip", step).value_or(0); clip > 0 && norm)
    counted.clipped += std::isfinite(*norm) && *norm > clip ? 1 : 0;
}

void Session::noteRefusal(double loss) {
  ++counted.skipped;
  const double limit = scalars.value(kLossLimit, step - 1).value_or(0);
  if (std::isfinite(loss) && std::isfinite(norm.value_or(0)) && limit > 0) {
    // A batch that is left out: the step itself is as good as any.
    refused = fmt::format("the loss {:.6g} is above its limit {:.6g}", loss, limit);
    counted.skippedInARow = 0;
    return;
  }
  if (norm && !std::isfinite(*norm))
    refused = fmt::format("the gradient norm is {}", *norm);
  else
    refused = fmt::format("the loss is {}", loss);
  if (++counted.skippedInARow < options.maxBadSteps)
    return;
  sound = true; // nothing has changed since the last update
  const int64_t before = counted.skippedInARow - 1;
  const std::string bad = gathered.badParameters();
  throw CommonError(fmt::format(
      "step {}: {}{}{}", step, *refused,
      before == 0 ? "; --max-bad-steps=1 allows no such step"
                  : fmt::format("; so it was in the {} step{} before, none of which was an update",
                                before, before == 1 ? "" : "s"),
      bad.empty() ? "; all parameters are as they were" : bad));
}

void Session::checkFinite(std::string_view what, double value) {
  if (std::isfinite(value))
    return;
  sound = false;
  drainBegun();
  std::string text;
  if (const std::optional<double> rate = scalars.value("lr", step - 1))
    text += fmt::format("; learning rate {:g}", *rate);
  if (previousNorm)
    text += fmt::format("; gradient norm of step {}: {:.4g}", step - 1, *previousNorm);
  const std::string bad = gathered.badParameters();
  fail("step {}: the {} is {}{}{}", step, what, value, text,
       bad.empty() ? "; all parameters are finite" : bad);
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
