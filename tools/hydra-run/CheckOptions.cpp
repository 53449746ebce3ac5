// What is wrong with flags for a plan.
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/Shown.h"
#include "tools/hydra-run/Options.h"

#include <initializer_list>
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

/// Mistakes by what they are about. Of several the one that is looked for first is said.
class OptionChecks {
public:
  OptionChecks(const RunOptions &options, const runtime::PlanFile &file)
      : options(options), file(file), plan(file.origin()),
        mode(file.plan().header()->mode()->string_view()),
        trainPlan(runtime::isTrainPlan(file.plan())),
        trains(trainPlan && options.steps > 0 && !options.repeats() && options.benchData == 0),
        measuresText(options.readsText() || !options.evalData.empty()),
        otherJob(firstGiven({{"export", options.exportTo.has_value()},
                             {"chat", options.chat},
                             {"generate", !options.prompts.empty()},
                             {"eval-only", options.evalOnly},
                             {"dry-run", options.dryRun}})) {}

  void check() const {
    checkFiles(options);
    checkSteps();
    checkJobs();
    checkTraining();
    checkText();
  }

private:
  /// The first of these flags that is given, without its dashes; null where none is.
  static const char *firstGiven(std::initializer_list<std::pair<const char *, bool>> flags) {
    for (const auto &[name, given] : flags)
      if (given)
        return name;
    return nullptr;
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
    if (trainPlan && options.repeats() && otherJob)
      fail("--{} excludes --{}, whose steps train the parameters", otherJob, timed);
    if (options.benchData > 0 && (otherJob || options.repeats()))
      fail("--bench-data excludes --{}", otherJob ? otherJob : timed);
  }

  /// What belongs to steps that train: reports, guards, checkpoints.
  void checkTraining() const {
    constexpr const char *ofSteps = "--{} is of use only with --steps of a train plan";
    if (options.run && !trains)
      fail(ofSteps, "run");
    if (!trainPlan && (options.save || options.resume))
      fail("--{}: {} is a {} plan; checkpoints belong to train plans{}",
           options.save ? "save" : "resume", plan, support::shown(mode),
           options.save ? "" : "; --weights takes the parameters of one");
    const char *report = firstGiven({{"csv", options.csv.has_value()},
                                     {"log", options.log && !options.evalOnly},
                                     {"tensorboard", options.tensorboard && !options.evalOnly},
                                     {"plot", options.plot},
                                     {"log-every", options.logEvery > 0},
                                     {"eval-every", options.evalEvery > 0}});
    if (report && !trains)
      fail(ofSteps, report);
    const char *guard = firstGiven({{"safe", options.safe},
                                    {"safety-window", options.safetyWindow > 0},
                                    {"safety-throughput", options.safetyThroughput}});
    if (guard && file.plan().programs()->Get(0)->safe() < 0)
      fail("--{}: {} has no safe form; hydrac --safe makes plans that do", guard, plan);
    if (options.sampleEvery > 0 && !trains)
      fail(ofSteps, "sample-every");
    if (!options.schedules.empty() && otherJob && !options.dryRun && !trains)
      fail(ofSteps, options.schedules.begin()->first);
    if (options.average && !options.resume && !options.weights)
      fail("--average needs a checkpoint that has averages: --resume, or --weights");
    if (options.average && trainPlan && options.steps > 0)
      fail("--average is for --eval-only, --generate, --chat and --export of a checkpoint; "
           "training goes on with the parameters themselves");
    if (options.maxBadSteps && !trains)
      fail(ofSteps, "max-bad-steps");
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
      fail("--{} is of use only with --steps of a train plan", options.policies.begin()->first);
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
  std::string_view mode;
  bool trainPlan, trains, measuresText;
  const char *otherJob; ///< than steps and measurements of their time; null: none
};

} // namespace

void hydra::checkOptions(const RunOptions &options, const runtime::PlanFile &file) {
  OptionChecks(options, file).check();
}
