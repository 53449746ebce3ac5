// Plans of many settings, made beside each other.
#include "tools/hydrac/Budget.h"

#include "compiler/Backends.h"
#include "compiler/emit/SafeForm.h"
#include "passes/precision/Policy.h"
#include "runtime/report/LiveMemory.h"
#include "runtime/report/PlanTimes.h"
#include "runtime/report/PredictedTime.h"
#include "runtime/report/Units.h"
#include "runtime/support/Error.h"
#include "tools/hydrac/BudgetReport.h"
#include "tools/hydrac/Lower.h"
#include "tools/hydrac/Reports.h"

#include "llvm/Support/Path.h"

#include <fmt/ranges.h>

#include <atomic>
#include <exception>
#include <thread>

using namespace mlir;

namespace hydra {

using budget::Point;
using budget::Trial;
using report::PackedPlan;

namespace {

/// Parts of a step in which different choices decide: activations are kept up to the end of the
/// forward pass, gradients from the end of the backward pass on.
enum Part : uint8_t { Forward, BackwardBegins, BackwardEnds, Elsewhere, Parts };

Part partOf(const planfile::Program &program, uint32_t block, uint32_t firstBackward) {
  if (block < firstBackward)
    return Forward;
  return block - firstBackward < (program.blocks()->size() - firstBackward) / 2 ? BackwardBegins
                                                                                : BackwardEnds;
}

/// The first block of the backward pass; all blocks, if there is none.
uint32_t firstBackwardOf(const planfile::Program &program) {
  uint32_t first = program.blocks()->size();
  for (uint32_t i = first; i-- > 0;)
    if (const planfile::Step *step = program.blocks()->Get(i)->node_as_Step();
        step && step->phase() <= planfile::Phase::loss)
      return i + 1;
  return first;
}

/// Live bytes of the transient segment while each part of a program runs, at most.
std::vector<uint64_t> partsOf(const planfile::Plan &plan, const planfile::Program &program) {
  const report::LiveMemory memory = report::liveMemory(plan, program);
  std::vector<int64_t> changes(memory.blocks + 1, 0);
  for (const report::LivePiece &piece : memory.pieces) {
    changes[piece.first] += static_cast<int64_t>(piece.end - piece.begin);
    changes[piece.last + 1] -= static_cast<int64_t>(piece.end - piece.begin);
  }
  std::vector<uint64_t> parts(Parts, 0);
  const uint32_t firstBackward = firstBackwardOf(program);
  int64_t live = 0;
  for (uint32_t i = 0; i < memory.blocks; ++i) {
    live += changes[i];
    uint64_t &most = parts[partOf(program, i, firstBackward)];
    most = std::max(most, static_cast<uint64_t>(live));
  }
  return parts;
}

Trial trialOf(const planfile::Plan &plan) {
  Trial trial;
  uint64_t transient = 0, persistent = 0;
  for (const auto &[kind, size] : {std::pair(planfile::SegmentKind::persistent, &persistent),
                                   std::pair(planfile::SegmentKind::transient, &transient)}) {
    *size = plan.segments()->Get(static_cast<uint32_t>(kind))->size();
    trial.bytes += *size;
  }
  trial.microseconds = report::predictedStep(plan).total;
  trial.parts.assign(Parts, 0);
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const planfile::Program &program = *plan.programs()->Get(i);
    if (i == 0)
      trial.parts = partsOf(plan, program);
    else
      trial.parts[Elsewhere] = std::max(trial.parts[Elsewhere], program.transient_bytes());
  }
  // What lies between live values of the first program counts with them.
  const uint64_t live = *std::max_element(trial.parts.begin(), trial.parts.end());
  for (uint64_t &part : trial.parts)
    part += persistent + (transient - std::min(live, transient));
  return trial;
}

/// A setting with which the model has no plan.
struct NoPlan {
  Point point;
};

/// What came of a setting.
struct Tried {
  Trial trial;
  bool failed = false;
  std::exception_ptr error;
};

class Chooser {
public:
  Chooser(const HydracOptions &options, bool reports)
      : options(options),
        reports(reports && (isGiven(options.budgetReport) || !options.budgetPicture.empty())) {}

  FailureOr<Setting> choose();

private:
  LogicalResult addSafe(Lowered &lowered, const Setting &setting) const;
  LogicalResult explainFailure(const Setting &setting) const;
  LogicalResult tryFastest();
  Setting search();
  Tried tryOut(const Point &point) const;
  std::vector<Trial> tryOut(const std::vector<Point> &points) const;
  void print(const BudgetOutcome &outcome) const;
  [[noreturn]] void failFor(const planfile::PlanT &leastPlan) const;

  const HydracOptions &options;
  const bool reports;
  CompileOptions flags; ///< as they are given
  std::optional<SettingChoices> settings;
  std::optional<Trial> first; ///< of the fastest point
};

/// The safe form too, if the plan is to have one: its programs need memory as well.
LogicalResult Chooser::addSafe(Lowered &lowered, const Setting &setting) const {
  if (!options.hasSafeForm())
    return success();
  FailureOr<Lowered> other =
      lower(options, {.setting = &setting, .safe = true, .care = Driver::Care::Trial});
  if (failed(other))
    return failure();
  addSafeForm(*lowered.outline, std::move(*other->outline));
  return success();
}

Tried Chooser::tryOut(const Point &point) const {
  Tried tried;
  try {
    const Setting setting = settings->at(point);
    auto lowered = lower(options, {.setting = &setting, .care = Driver::Care::Trial});
    if (failed(lowered) || failed(addSafe(*lowered, setting)))
      tried.failed = true;
    else
      tried.trial = trialOf(*PackedPlan(*lowered->outline));
  } catch (...) {
    tried.error = std::current_exception();
  }
  return tried;
}

/// On as many threads as there are cores: each has a context of its own.
std::vector<Trial> Chooser::tryOut(const std::vector<Point> &points) const {
  constexpr size_t kMostThreads = 8;
  std::vector<Tried> tried(points.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < points.size();)
      if (points[i] == Point(points[i].size(), 0))
        tried[i].trial = *first;
      else
        tried[i] = tryOut(points[i]);
  };
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min({points.size(), cores, kMostThreads}); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  std::vector<Trial> trials;
  for (size_t i = 0; i < points.size(); ++i) {
    if (tried[i].error)
      std::rethrow_exception(tried[i].error);
    if (tried[i].failed)
      throw NoPlan{points[i]};
    trials.push_back(tried[i].trial);
  }
  return trials;
}

/// With all choices made for memory the plan still takes too much.
void Chooser::failFor(const planfile::PlanT &leastPlan) const {
  const uint64_t least = bytesOf(leastPlan);
  const uint64_t there = options.memoryBudgetBytes();
  std::vector<std::string> helps;
  if (!flags.binding.mesh.empty() || backendOf(flags.target).hasCollectives())
    helps.emplace_back(flags.binding.mesh.empty() ? "several ranks (--mesh=data:2 --shard=fsdp)"
                                                  : "more ranks");
  if (flags.mode == Mode::Train && flags.binding.batch > 1 && !options.splitBatch)
    helps.emplace_back("--split-batch");
  helps.emplace_back(flags.mode == Mode::Generate ? "a smaller --batch, --context or --prefill"
                                                  : "a smaller --batch or --seq");
  if (flags.mode == Mode::Train && flags.clip)
    helps.emplace_back("--no-clip");
  if (flags.update.exchange == AccumExchange::Last)
    helps.emplace_back("--accum-exchange=each");
  if (flags.mode == Mode::Train && flags.offload == Offload::None && hasMoments(leastPlan))
    helps.emplace_back("--offload=optimizer");
  if (!precisionPolicy(flags.precision)->holdsValues())
    helps.emplace_back("--precision=bf16");
  helps.emplace_back("or --allow-oversize, to write it all the same");
  support::fail(
      "the plan needs {}, {} more than the {} of {}, whatever --recompute=auto chooses; what "
      "helps: {}",
      report::bytesText(least), report::bytesText(least - there), report::bytesText(there),
      isGiven(options.memoryBudget) ? "--memory-budget" : flags.target.name,
      fmt::join(helps, ", "));
}

/// Says what is wrong with a plan that could not be made.
LogicalResult Chooser::explainFailure(const Setting &setting) const {
  if (succeeded(lower(options, {.setting = &setting})) &&
      (!options.hasSafeForm() || succeeded(lower(options, {.setting = &setting, .safe = true}))))
    printProblem("a plan could be made with checks between passes alone, which is a bug of a pass");
  return failure();
}

LogicalResult Chooser::tryFastest() {
  { // the flags for this model, before anything is chosen
    Driver driver(options.model);
    if (failed(driver.load()))
      return failure();
    flags = options.compileOptions(driver.model());
  }
  const Setting fastest = SettingChoices::fastestSetting(options, flags);
  auto lowered = lower(options, {.setting = &fastest, .care = Driver::Care::Trial});
  if (failed(lowered))
    return explainFailure(fastest);
  settings.emplace(options, flags, *PackedPlan(*lowered->outline));
  if (failed(addSafe(*lowered, fastest)))
    return explainFailure(fastest);
  first = trialOf(*PackedPlan(*lowered->outline));
  return success();
}

void Chooser::print(const BudgetOutcome &outcome) const {
  if (isGiven(options.budgetReport))
    printOutput(options.budgetReport == "json"
                    ? budgetJson(outcome)
                    : budgetText(outcome, options.budgetReport == "markdown"));
  if (!options.budgetPicture.empty())
    writeFile(options.budgetPicture, budgetSvg(outcome));
}

Setting Chooser::search() {
  budget::Search search(settings->space(),
                        [this](const std::vector<Point> &points) { return tryOut(points); });
  BudgetOutcome outcome{.settings = *settings, .search = search, .chosen = {}};
  outcome.bytes = options.memoryBudgetBytes();
  outcome.chosen = search.fastestWithin(outcome.bytes);
  outcome.target = flags.target.name;
  outcome.title = fmt::format("{}{}, {}, {} on {}: time over memory",
                              llvm::sys::path::stem(options.model.file).str(),
                              flags.binding.preset.empty() ? "" : " " + flags.binding.preset,
                              flags.precision, modeName(flags.mode).str(), outcome.target);
  if (reports) {
    constexpr int kAmounts = 10;
    search.tryFront(kAmounts);
    print(outcome);
  }
  if (outcome.chosen)
    return settings->at(*outcome.chosen);
  const Setting least = settings->at(search.front().back());
  if (const auto lowered = lower(options, {.setting = &least}); // with gathers as late as can be
      succeeded(lowered) && bytesOf(*lowered->outline) > outcome.bytes && !options.allowOversize)
    failFor(*lowered->outline);
  return least;
}

FailureOr<Setting> Chooser::choose() {
  if (failed(tryFastest()))
    return failure();
  try {
    return search();
  } catch (const NoPlan &no) {
    return explainFailure(settings->at(no.point));
  }
}

} // namespace

FailureOr<Setting> chooseSetting(const HydracOptions &options, bool reports) {
  return Chooser(options, reports).choose();
}

} // namespace hydra
