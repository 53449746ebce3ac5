// What is wrong with flags for a plan.
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/Shown.h"
#include "tools/hydra-run/Options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

using namespace hydra;
using support::fail;

namespace {

/// The path in `NAME=PATH` or `NAME=PATH,weight=W`.
std::string pathOf(const std::string &source) {
  const std::string behind = source.substr(source.find('=') + 1); // all of it where there is no =
  return behind.substr(0, behind.find(','));
}

/// Throws Error where a file would be written over one that is read, or over another: data that a
/// log takes the place of are lost.
void checkFiles(const RunOptions &options) {
  std::vector<support::NamedFile> inputs = {{"the plan", options.plan},
                                            {"--inputs", options.inputs.value_or("")},
                                            {"--weights", options.weights.value_or("")},
                                            {"--adapter", options.adapter.value_or("")},
                                            {"--tokenizer", options.tokenizer}};
  for (const std::string &path : options.data)
    inputs.push_back({"--data", path});
  for (const std::string &source : options.mix)
    inputs.push_back({"--mix", pathOf(source)});
  for (const std::string &text : options.evalData)
    inputs.push_back({"--eval-data", pathOf(text)});
  support::checkOutputs(inputs,
                        {{"--outputs", options.outputs.value_or("")},
                         {"--export", options.exportTo.value_or("")},
                         {"--log", options.log.value_or("")},
                         {"--csv", options.csv.value_or("")},
                         {"--bench-json", options.benchJson.value_or("")},
                         {"--profile", options.profile.ends_with(".json") ? options.profile : ""}});
}

/// What a call of hydra-run does.
enum Work : unsigned {
  kTrains = 1,    ///< steps of a run
  kTimes = 2,     ///< steps or calls for their time
  kTimesData = 4, ///< batches for their time
  kMeasures = 8,  ///< losses alone
  kCalls = 16,    ///< one call of a plan that does not train, on what it is given
  kWrites = 32,   ///< text by a plan that does not train
  kSamples = 64,  ///< text by one that does
  kChecks = 128   ///< nothing yet
};

/// What becomes of a flag without effect.
enum class Idle {
  refused,
  noted ///< it says what there is or where it runs, and scripts give it to all their calls
};

/// With which work a flag has an effect.
struct FlagUse {
  const char *flag;
  bool (*given)(const RunOptions &);
  unsigned works;
  const char *onlyWith; ///< the same in words
  Idle idle = Idle::refused;
};

constexpr const char *kSteps = "--steps of a train plan";
constexpr const char *kMeasured = "--steps of a train plan, or with --eval-only";
constexpr const char *kPrograms =
    "--steps, --bench, --profile, --eval-only, --generate or --chat of a train plan";
constexpr const char *kText =
    "--steps, --bench, --profile, --bench-data or --eval-only of a train plan";
/// Plans that do not train refuse text.
constexpr unsigned kReads = kTrains | kTimes | kTimesData | kMeasures | kCalls | kWrites | kChecks;
/// Batches alone are made by no step.
constexpr unsigned kRunsSteps = ~unsigned{kTimesData};

using Run = const RunOptions &;

/// Of several that have no effect the first is said.
constexpr FlagUse kFlagUses[] = {
    {"run", [](Run r) { return r.run.has_value(); }, kTrains, kSteps},
    {"csv", [](Run r) { return r.csv.has_value(); }, kTrains, kSteps},
    {"log", [](Run r) { return r.log.has_value(); }, kTrains | kMeasures, kSteps},
    {"tensorboard", [](Run r) { return r.tensorboard.has_value(); }, kTrains | kMeasures, kSteps},
    {"plot", [](Run r) { return r.plot; }, kTrains, kSteps},
    {"log-every", [](Run r) { return r.logEvery > 0; }, kTrains, kSteps},
    {"eval-every", [](Run r) { return r.evalEvery > 0; }, kTrains, kSteps},
    {"sample-every", [](Run r) { return r.sampleEvery > 0; }, kTrains, kSteps},
    {"max-bad-steps", [](Run r) { return r.maxBadSteps.has_value(); }, kTrains, kSteps},
    {"safety-window", [](Run r) { return r.safetyWindow > 0; }, kTrains, kSteps},
    {"safety-throughput", [](Run r) { return r.safetyThroughput; }, kTrains, kSteps},
    {"eval-data", [](Run r) { return !r.evalData.empty(); }, kTrains | kMeasures | kChecks,
     kMeasured},
    {"eval-batches", [](Run r) { return r.evalBatches > 0; }, kTrains | kMeasures | kChecks,
     kMeasured},
    {"data", [](Run r) { return !r.data.empty(); }, kReads, kText, Idle::noted},
    {"mix", [](Run r) { return !r.mix.empty(); }, kReads, kText, Idle::noted},
    {"packed", [](Run r) { return r.packed && r.readsText(); }, kReads, kText, Idle::noted},
    {"tokenizer", [](Run r) { return !r.tokenizer.empty() && r.readsText() && !r.writesText(); },
     kReads, kText, Idle::noted},
    {"prefetch-threads", [](Run r) { return r.prefetchThreads && r.readsText(); }, kReads, kText,
     Idle::noted},
    {"prefetch-batches", [](Run r) { return r.prefetchBatches && r.readsText(); }, kReads, kText,
     Idle::noted},
    {"ids", [](Run r) { return r.ids.has_value(); }, kTrains | kTimes | kCalls | kChecks,
     "--bench or --profile, or a call without --generate and --chat", Idle::noted},
    {"device", [](Run r) { return !r.device.empty(); }, kRunsSteps, "steps and calls", Idle::noted},
    {"threads", [](Run r) { return r.threads > 0; }, kRunsSteps, "steps and calls", Idle::noted},
    {"scalar", [](Run r) { return !r.scalars.empty(); },
     kTrains | kTimes | kMeasures | kCalls | kWrites | kSamples | kChecks, kPrograms},
    {"safe", [](Run r) { return r.safe; }, kTrains | kTimes | kMeasures | kSamples | kChecks,
     kPrograms},
    {"poison", [](Run r) { return r.poison; }, kRunsSteps, "steps and calls"},
    {"check", [](Run r) { return r.check; }, kRunsSteps, "steps and calls"},
    {"no-graph", [](Run r) { return !r.graph; }, kRunsSteps, "steps and calls"},
    {"graph-after", [](Run r) { return r.graphAfter > 0; }, kRunsSteps, "steps and calls"},
};

/// Mistakes by what they are about. Of several the one that is looked for first is said.
class OptionChecks {
public:
  OptionChecks(const RunOptions &options, const runtime::PlanFile &file, uint64_t ranks)
      : options(options), file(file), plan(file.origin()), ranks(ranks),
        mode(file.plan().header()->mode()->string_view()),
        trainPlan(runtime::isTrainPlan(file.plan())),
        trains(trainPlan && options.steps > 0 && !options.repeats() && options.benchData == 0),
        measuresText(options.readsText() || !options.evalData.empty()),
        otherJob(firstGiven({{"export", options.exportTo.has_value()},
                             {"chat", options.chat},
                             {"generate", !options.prompts.empty()},
                             {"eval-only", options.evalOnly},
                             {"dry-run", options.dryRun}})) {}

  /// What has no effect but to be said.
  std::vector<std::string> check() {
    checkFiles(options);
    checkSteps();
    checkJobs();
    checkUses();
    checkTraining();
    checkText();
    return notes;
  }

private:
  /// The first of these flags that is given, without its dashes; null where none is.
  static const char *firstGiven(std::initializer_list<std::pair<const char *, bool>> flags) {
    for (const auto &[name, given] : flags)
      if (given)
        return name;
    return nullptr;
  }

  /// The first flag that says something of a schedule, as it was given.
  std::string scheduleFlag() const {
    constexpr std::array<std::string_view, 8> kFlags = {
        "--lr",     "--schedule", "--min-lr",         "--warmup",
        "--stable", "--clip",     "--schedule-steps", "--norm-spike"};
    for (const auto &[flag, values] : options.given)
      if (std::ranges::find(kFlags, flag) != kFlags.end())
        return flag;
    return "--" + options.schedules.begin()->first;
  }

  /// How many steps are made, and what is written behind them.
  void checkSteps() const {
    if (!options.profileSteps.empty() && (!trainPlan || options.steps == 0))
      fail("--profile-steps is of use only with --steps of a train plan");
    if (!options.profileSteps.empty() && options.profile == "json")
      fail("--profile-steps: --profile=json leaves the standard output to nothing else; use table, "
           "markdown or FILE.json");
    if (!trainPlan && options.steps > 0 && !options.repeats())
      fail("--steps: {} is a {} plan, which makes one call; only train plans make steps", plan,
           support::shown(mode));
    if (options.repeats() && options.steps > kMostRepeats)
      fail("--steps {}: --profile repeats at most {} steps", options.steps, kMostRepeats);
    if (trainPlan && options.steps == 0 && !otherJob && !options.repeats() &&
        options.benchData == 0)
      fail("{} is a train plan: say how far to train it with --steps N, or use --bench", plan);
    if (options.outputs && trainPlan && options.steps == 0 && !options.dryRun)
      fail("--outputs is of use only with --steps of a train plan, or with a plan that makes one "
           "call");
    if (options.outputs && options.writesText() && !trainPlan)
      fail("--outputs excludes --generate and --chat of a plan that does not train");
  }

  /// Timed steps train parameters that no other job is to read.
  void checkJobs() const {
    const char *timed = options.bench > 0 ? "bench" : "profile";
    if (options.dryRun && options.repeats())
      fail("--dry-run excludes --{}: it runs nothing that could be timed", timed);
    if (trainPlan && options.repeats() && otherJob)
      fail("--{} excludes --{}, whose steps train the parameters", otherJob, timed);
    if (options.benchData == 0)
      return;
    if (otherJob || options.repeats())
      fail("--bench-data excludes --{}", otherJob ? otherJob : timed);
    if (const char *flag = firstGiven({{"weights", options.weights.has_value()},
                                       {"average", options.average},
                                       {"scalar", !options.scalars.empty()},
                                       {"no-graph", !options.graph},
                                       {"check", options.check},
                                       {"graph-after", options.graphAfter > 0},
                                       {"poison", options.poison},
                                       {"safe", options.safe}}))
      fail("--bench-data excludes --{}: it reads text, and runs no step", flag);
  }

  /// Flags that nothing asks for that the call does.
  void checkUses() {
    const unsigned works = (trains ? kTrains : 0) | (options.repeats() ? kTimes : 0) |
                           (options.benchData > 0 ? kTimesData : 0) |
                           (options.evalOnly ? kMeasures : 0) |
                           (!options.writesText() ? (trainPlan ? 0 : kCalls)
                            : trainPlan           ? kSamples
                                                  : kWrites) |
                           (options.dryRun ? kChecks : 0);
    for (const FlagUse &use : kFlagUses) {
      if (!use.given(options) || (use.works & works) != 0)
        continue;
      if (use.idle == Idle::refused)
        fail("--{} is of use only with {}", use.flag, use.onlyWith);
      notes.push_back(
          fmt::format("--{} has no effect; it is of use only with {}", use.flag, use.onlyWith));
    }
    if (options.benchData > 0 && options.steps > 0)
      notes.emplace_back("--steps has no effect; --bench-data runs none");
    if (options.rankTimeout > 0 && ranks == 1)
      notes.emplace_back("--rank-timeout has no effect; there is one rank");
    const std::vector<std::string> states = statesOfModel();
    if (options.exportTo && !states.empty())
      notes.push_back(fmt::format("--export writes parameters alone; what the model keeps beside "
                                  "them ({}) is in checkpoints (--save)",
                                  fmt::join(states, ", ")));
  }

  std::vector<std::string> statesOfModel() const {
    std::vector<std::string> names;
    for (const planfile::Variable *variable : *file.plan().variables())
      if (variable->role() == planfile::VariableRole::state)
        names.push_back(support::shown(variable->name()->string_view()));
    return names;
  }

  /// What belongs to steps that train: guards, checkpoints.
  void checkTraining() const {
    if (!trainPlan && (options.save || options.resume))
      fail("--{}: {} is a {} plan; checkpoints belong to train plans{}",
           options.save ? "save" : "resume", plan, support::shown(mode),
           options.save ? "" : "; --weights takes the parameters of one");
    const char *guard = firstGiven({{"safe", options.safe},
                                    {"safety-window", options.safetyWindow > 0},
                                    {"safety-throughput", options.safetyThroughput}});
    if (guard && file.plan().programs()->Get(0)->safe() < 0)
      fail("--{}: {} has no safe form; hydrac --safe makes plans that do", guard, plan);
    if (options.safe && (options.safetyWindow > 0 || options.safetyThroughput))
      fail("--safe excludes --{}: the safe form alone is compared with nothing",
           options.safetyWindow > 0 ? "safety-window" : "safety-throughput");
    if (!options.schedules.empty() && (otherJob || options.benchData > 0) && !options.dryRun &&
        !trains)
      fail("{} is of use only with {}", scheduleFlag(), kSteps);
    if (options.average && !options.resume && !options.weights)
      fail("--average needs a checkpoint that has averages: --resume, or --weights");
    if (options.average && trainPlan && options.steps > 0)
      fail("--average is for --eval-only, --generate, --chat and --export of a checkpoint; "
           "training goes on with the parameters themselves");
    if (options.benchWarmup && !options.repeats())
      fail("--bench-warmup is of use only with --bench or --profile");
    if (options.save && !trains)
      fail("--save is of use only with --steps{}",
           options.steps == 0 ? "" : ", and where these are not only timed");
    if (options.weights && options.resume && options.resume != "auto")
      fail("--resume excludes --weights: a checkpoint has parameters");
    if (options.resume == "auto" && !options.save)
      fail("--resume auto means the folder of --save, which is not given");
  }

  /// The text that is trained on, and measured.
  void checkText() const {
    if (options.benchData > 0 && !options.readsText())
      fail("--bench-data needs --data");
    if (!options.policies.empty() && (!trainPlan || (options.steps == 0 && !options.repeats())))
      fail("--{} is of use only with {}", options.policies.begin()->first, kSteps);
    if (options.packed && !measuresText)
      fail("--packed needs --data or --mix");
    const char *measuring = firstGiven({{"eval-batches", options.evalBatches > 0},
                                        {"prefetch-threads", options.prefetchThreads.has_value()},
                                        {"prefetch-batches", options.prefetchBatches.has_value()}});
    if (measuring && !measuresText)
      fail("--{} needs --data, --mix or --eval-data", measuring);
    if (options.prefetchThreads && options.prefetchBatches &&
        (*options.prefetchThreads == 0) != (*options.prefetchBatches == 0))
      fail("--prefetch-threads {} and --prefetch-batches {}: either threads keep batches ready, or "
           "both are 0",
           *options.prefetchThreads, *options.prefetchBatches);
    if (options.ids && trainPlan && options.steps == 0 && !options.repeats())
      fail("--ids is of use only with --steps, --bench or --profile of a train plan");
    if (options.ids && !takesIds())
      fail("--ids: no program of {} takes tokens", plan);
    if (options.evalOnly && !trainPlan)
      fail("--eval-only: {} is a {} plan; train plans have a program that measures", plan,
           support::shown(mode));
    if (options.evalOnly && !measuresText)
      fail("--eval-only needs --data, --mix or --eval-data");
    if (!measuresText && !options.tokenizer.empty() && !options.writesText())
      fail("--tokenizer says what --data holds, which is not given");
  }

  bool takesIds() const {
    for (const planfile::Program *program : *file.plan().programs())
      for (const planfile::Input *input : *program->inputs())
        if (input->kind() != planfile::InputKind::values)
          return true;
    return false;
  }

  const RunOptions &options;
  const runtime::PlanFile &file;
  const std::string &plan; ///< its name
  uint64_t ranks;
  std::string_view mode;
  bool trainPlan, trains, measuresText;
  const char *otherJob; ///< than steps and measurements of their time; null: none
  std::vector<std::string> notes;
};

} // namespace

std::vector<std::string> hydra::checkOptions(const RunOptions &options,
                                             const runtime::PlanFile &file, uint64_t ranks) {
  return OptionChecks(options, file, ranks).check();
}
