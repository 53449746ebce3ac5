// What is wrong with flags for a plan.
#include "runtime/support/Error.h"
#include "runtime/support/NamedFiles.h"
#include "runtime/support/Shown.h"
#include "tools/hydra-run/Options.h"

using namespace hydra;
using support::fail;

/// The path in `NAME=PATH` or `NAME=PATH,weight=W`.
static std::string pathOf(const std::string &source) {
  const std::string behind = source.substr(source.find('=') + 1); // all of it where there is no =
  return behind.substr(0, behind.find(','));
}

/// Throws Error where a file would be written over one that is read, or over another: data that a
/// log takes the place of are lost.
static void checkFiles(const RunOptions &options) {
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

void hydra::checkOptions(const RunOptions &options, const runtime::PlanFile &file) {
  checkFiles(options);
  const std::string_view mode = file.plan().header()->mode()->string_view();
  const bool trainPlan = runtime::isTrainPlan(file.plan()),
             otherJob = options.repeats() || options.dryRun || options.writesText() ||
                        options.exportTo || options.benchData > 0 || options.evalOnly;
  const std::string &plan = file.origin();
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
  if (trainPlan && options.steps == 0 && !otherJob)
    fail("{} is a train plan: say how far to train it with --steps N, or use --bench", plan);
  if (options.outputs && trainPlan && options.steps == 0 && !options.dryRun)
    fail("--outputs is of use only with --steps of a train plan, or with a plan that makes one "
         "call");
  if (options.outputs && options.writesText() && !trainPlan)
    fail("--outputs excludes --generate and --chat of a plan that does not train");
  // Timed steps train parameters that no other job is to read.
  const char *otherFlag = options.exportTo           ? "export"
                          : options.chat             ? "chat"
                          : !options.prompts.empty() ? "generate"
                          : options.evalOnly         ? "eval-only"
                          : options.dryRun           ? "dry-run"
                                                     : nullptr;
  if (trainPlan && options.repeats() && otherFlag)
    fail("--{} excludes --{}, whose steps train the parameters", otherFlag,
         options.bench > 0 ? "bench" : "profile");
  if (options.benchData > 0 && (otherFlag || options.repeats()))
    fail("--bench-data excludes --{}", otherFlag           ? otherFlag
                                       : options.bench > 0 ? "bench"
                                                           : "profile");
  const bool steps = trainPlan && options.steps > 0 && !options.repeats() && options.benchData == 0;
  if (options.run && !steps)
    fail("--run is of use only with --steps of a train plan");
  if (!trainPlan && (options.save || options.resume))
    fail("--{}: {} is a {} plan; checkpoints belong to train plans{}",
         options.save ? "save" : "resume", plan, support::shown(mode),
         options.save ? "" : "; --weights takes the parameters of one");
  const char *ofSteps = options.csv                                ? "csv"
                        : options.log && !options.evalOnly         ? "log"
                        : options.tensorboard && !options.evalOnly ? "tensorboard"
                        : options.plot                             ? "plot"
                        : options.logEvery > 0                     ? "log-every"
                        : options.evalEvery > 0                    ? "eval-every"
                                                                   : nullptr;
  if (ofSteps && !steps)
    fail("--{} is of use only with --steps of a train plan", ofSteps);
  const char *guarding = options.safe               ? "--safe"
                         : options.safetyWindow > 0 ? "--safety-window"
                         : options.safetyThroughput ? "--safety-throughput"
                                                    : nullptr;
  if (guarding && file.plan().programs()->Get(0)->safe() < 0)
    fail("{}: {} has no safe form; hydrac --safe makes plans that do", guarding, plan);
  if (options.sampleEvery > 0 && (!trainPlan || options.steps == 0 || options.repeats()))
    fail("--sample-every is of use only with --steps of a train plan");
  if (options.average && !options.resume && !options.weights)
    fail("--average needs a checkpoint that has averages: --resume, or --weights");
  if (options.average && trainPlan && options.steps > 0)
    fail("--average is for --eval-only, --generate, --chat and --export of a checkpoint; training "
         "goes on with the parameters themselves");
  if (options.maxBadSteps && !steps)
    fail("--max-bad-steps is of use only with --steps of a train plan");
  if (options.benchWarmup && !options.repeats())
    fail("--bench-warmup is of use only with --bench or --profile");
  if (options.save && !steps)
    fail("--save is of use only with --steps{}",
         options.steps == 0 ? "" : ", and where these are not only timed");
  if (options.weights && options.resume && options.resume != "auto")
    fail("--resume excludes --weights: a checkpoint has parameters");
  if (options.resume == "auto" && !options.save)
    fail("--resume auto means the folder of --save, which is not given");
  const bool readsText = options.readsText();
  if (options.benchData > 0 && !readsText)
    fail("--bench-data needs --data");
  const bool measuresText = readsText || !options.evalData.empty();
  if (!options.policies.empty() && (!trainPlan || (options.steps == 0 && !options.repeats())))
    fail("--{} is of use only with --steps of a train plan", options.policies.begin()->first);
  if (options.packed && !measuresText)
    fail("--packed needs --data or --mix");
  if (options.evalBatches > 0 && !measuresText)
    fail("--eval-batches needs --data, --mix or --eval-data");
  if ((options.prefetchThreads || options.prefetchBatches) && !measuresText)
    fail("--prefetch-{} needs --data, --mix or --eval-data",
         options.prefetchThreads ? "threads" : "batches");
  if (options.prefetchThreads && options.prefetchBatches &&
      (*options.prefetchThreads == 0) != (*options.prefetchBatches == 0))
    fail("--prefetch-threads {} and --prefetch-batches {}: either threads keep batches ready, or "
         "both are 0",
         *options.prefetchThreads, *options.prefetchBatches);
  if (options.evalOnly && !trainPlan)
    fail("--eval-only: {} is a {} plan; train plans have a program that measures", plan,
         support::shown(mode));
  if (options.evalOnly && !measuresText)
    fail("--eval-only needs --data, --mix or --eval-data");
  if (!measuresText && !options.tokenizer.empty() && !options.writesText())
    fail("--tokenizer says what --data holds, which is not given");
}
