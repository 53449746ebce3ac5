// A training run from its first step to its last: progress, held-out loss, log, checkpoints.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/RunLog.h"
#include "runtime/run/SafetyGuard.h"
#include "runtime/run/Session.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Steps of a run that are profiled, by their numbers; none with an empty form, which is that of
/// --profile.
struct ProfiledSteps {
  std::string form;
  int64_t first = 0, last = 0;
};

/// A text that the model continues.
struct TextSample {
  std::string prompt, text; // the second is what the model adds
};

struct TrainOptions {
  int64_t steps = 0;                         // number of the last step, also when resuming
  std::optional<std::filesystem::path> save; // folder of checkpoints; one is saved at the end
  int64_t saveEvery = 0;                     // and every so many steps; 0: only at the end
  int keep = 3;                              // checkpoints that remain
  int64_t evalEvery = 0;                     // held-out loss every so many steps; 0: at the end
  int64_t sampleEvery = 0;                   // texts every so many steps; 0: none
  /// Makes them, on every rank alike, unless it is interrupted, which it asks for each token.
  std::function<std::vector<TextSample>(const std::function<bool()> &interrupted)> sample;
  RunLogFiles log;
  std::optional<std::string> revision; // of the model's file, for records
  int64_t logEvery = 1;                // plain lines of progress
  bool live = false;                   // progress on a terminal
  bool plot = false;                   // the curve of losses at the end
  ProfiledSteps profile;
  SafetySetup safety;          // of a plan whose programs have safe forms
  std::function<void()> begin; // called when all that is written to is open; may be empty
  Ranks *ranks = nullptr;      // of a plan with a mesh
};

struct TrainResult {
  std::vector<double> losses; // of the steps made, each before its update
  double lastEvaluation = 0;  // Session::evaluate after the last step
  int signal = 0;             // that ended the run early, after a save
};

/// Measures the loss of a text of Session::measuredTexts, by its index there; every rank makes the
/// same calls. Throws Error as Session::evaluate does.
EvaluationRecord measureText(const PlanFile &file, Session &session, size_t index,
                             const std::optional<std::string> &revision);

/// Throws Error where the session has made more steps already.
void checkSteps(const Session &session, int64_t steps);

/// Trains until `options.steps`. Throws Error when the loss is not finite, when the data cannot be
/// read, and when the last checkpoint cannot be saved; when another one cannot, or progress or logs
/// cannot be written, a note says so on standard error and training goes on. What was profiled is
/// printed or written behind the last of those steps, or where the run ends before. With `save`,
/// whatever is thrown between two steps is thrown after a checkpoint was saved.
///
/// On several ranks rank 0 prints, logs and saves. It decides on every step while the one before
/// runs: all ranks stop after the same step when one of them got a signal or cannot read its data.
TrainResult train(const PlanFile &file, Executor &executor, Session &session,
                  const TrainOptions &options);

} // namespace hydra::runtime
