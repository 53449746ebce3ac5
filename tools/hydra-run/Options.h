// The command line of hydra-run.
#pragma once

#include "runtime/run/Batch.h"
#include "runtime/run/Generate.h"
#include "runtime/run/PolicyFlags.h"
#include "runtime/run/Scalars.h"
#include "tools/hydra-run/RunDirectory.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hydra {

/// Steps or calls that --bench and --profile time, and those before that warm up.
inline constexpr int kDefaultRepeats = 20;
inline constexpr int kWarmUpSteps = 3;
inline constexpr int kMostRepeats = 1 << 30;

struct RunOptions {
  std::string plan;
  std::optional<std::string> inputs, outputs;
  std::optional<runtime::IdDistribution> ids; // default: uniform

  std::vector<std::string> data, mix, evalData; // the last: NAME=PATH
  bool packed = false;
  std::string tokenizer; // empty: not given
  std::optional<int> prefetchThreads, prefetchBatches;
  int64_t evalBatches = 0; // 0: all of the held-out text

  int64_t steps = 0; // 0: not given
  std::optional<uint64_t> seed;
  std::map<std::string, runtime::ScheduleChange> schedules;
  std::vector<std::string> scalars; // as parseSchedule takes them
  runtime::PolicyFlags policies;
  int64_t evalEvery = 0;
  bool evalOnly = false;
  std::optional<int64_t> maxBadSteps;
  bool safe = false;        // of a plan with safe forms: these alone
  int64_t safetyWindow = 0; // 0: not given
  bool safetyThroughput = false;

  std::optional<std::string> save, resume, weights, adapter, exportTo;
  bool average = false;
  int64_t saveEvery = 0;
  int keep = 3;

  std::optional<std::string> run; // the directory of everything that is written
  std::optional<std::string> log, csv, tensorboard;
  int64_t logEvery = 0; // 0: not given
  bool plot = false;

  std::vector<std::string> prompts;
  int64_t sampleEvery = 0; // 0: not given
  bool chat = false;
  std::string chatTemplate; // empty: what the tokenizer's files say
  std::optional<std::string> system;
  runtime::GenerateOptions generate;
  std::vector<std::string> choices; // flags of `generate` that were given

  int bench = 0;                  // 0: not asked for
  std::optional<int> benchWarmup; // default: kWarmUpSteps
  std::optional<std::string> benchJson;
  int benchData = 0;
  std::string profile, profileSteps; // the second as parseStepRange takes it, or empty
  bool dryRun = false;

  std::string device; ///< empty: what the plan was compiled for
  bool graph = true, check = false, poison = false;
  int64_t graphAfter = 0;
  bool tune = false;
  bool calibrate = false;
  std::vector<std::string> calibrationPlans; ///< beside `plan`
  std::string targetBase;                    ///< empty: the target of the plan
  std::string output;                        ///< where --tune or --calibrate writes
  bool allowNondeterministic = false;
  unsigned threads = 0;

  uint32_t ranks = 0;     // 0: not given
  uint32_t gpus = 0;      // the same, of plans for GPUs
  double rankTimeout = 0; // seconds; 0: not given

  Arguments given; // of the command line, and of the run that it goes on with

  bool readsText() const { return !data.empty() || !mix.empty(); }
  bool writesText() const { return chat || !prompts.empty(); }
  /// Whether it depends on the seed what text is written.
  bool drawsTokens() const { return writesText() && generate.sampling.temperature > 0; }
  bool repeats() const { return bench > 0 || (!profile.empty() && profileSteps.empty()); }
  /// Whether a profile is all that goes to the standard output.
  bool printsJson() const { return profile == "json"; }
};

/// Of `5..24` the numbers of the first and the last step, from 1; of anything else {0, 0}.
std::pair<int64_t, int64_t> parseStepRange(const std::string &text);

/// Mistakes that only the plan shows. Returns a line for each flag that has no effect on this call,
/// where that is no mistake. Throws Error.
std::vector<std::string> checkOptions(const RunOptions &options, const runtime::PlanFile &file,
                                      uint64_t ranks);

/// The status that the program must end with right away (`--help`), or nothing. With `--resume DIR`
/// where DIR is a run, flags that are not given are as they were in that run. Throws Error with
/// what is wrong, and when the run cannot be read.
std::optional<int> parseOptions(int argc, char **argv, RunOptions &options);

} // namespace hydra
