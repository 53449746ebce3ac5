// The record of a training run for other programs: JSON lines, a table, TensorBoard events.
#pragma once

#include "runtime/plan/plan_generated.h"
#include "runtime/run/LineFile.h"
#include "runtime/run/Progress.h"
#include "runtime/run/SafetyMonitor.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace hydra::report {
class TensorBoardWriter;
}

namespace hydra::runtime {

/// Where a run is recorded; each may be missing.
struct RunLogFiles {
  std::optional<std::filesystem::path> jsonLines = {}, csv = {};
  std::optional<std::filesystem::path> tensorboard = {}; // a directory
  int64_t histogramEvery = 1; // steps from those with histograms there to the next
};

/// The loss of text that is not trained on.
struct EvaluationRecord {
  std::string set; // empty: what is held out of the text that is trained on
  std::string dataset;
  int64_t step = 0;
  double loss = 0, seconds = 0;              // nats per token
  std::optional<double> bytesPerToken = {};  // of text
  uint64_t batches = 0;                      // of each rank
  uint64_t batch = 0, length = 0, ranks = 1; // rows of a batch of all ranks; tokens of a row
  uint64_t accumulation = 1;                 // micro-batches of a step of training
  std::optional<std::string> revision = {};  // of the model's file
};

/// Writes a line for each thing that happens, whole and at once. Every line is an object with
/// `event`: `start` (plan, model, symbols), `step` (loss, loss_mean, learning_rate, grad_norm,
/// clip, clip_percent, step_ms, data_ms, tokens, tokens_per_second, flops_per_second, mfu,
/// memory_bytes; epochs: passes over the text, or over each source of several by its name; outputs:
/// what the entry returns beside its loss, numbers or lists of them, by name), `skipped` (reason:
/// the update of that step was refused), `decision` (what: of a policy, behind that step),
/// `anomaly` and `safety` (of plans whose programs have safe forms), `eval` (of what is held out,
/// held_out_loss; of another text, its name `set`; of both what models.md asks for, R27),
/// `sample` (text that the model continues: `prompt`, `text`), `checkpoint`, `end`. A table has the
/// numbers of steps alone.
///
/// TensorBoard gets the same numbers, lists of outputs as histograms, and samples as text.
///
/// What cannot be written (a full disk) costs a line on standard error and ends that record, not
/// the run.
class RunLog {
public:
  /// A resumed run appends to the files; where steps then appear twice, the later line counts.
  /// Throws Error when one cannot be opened.
  RunLog(const RunLogFiles &files, bool append);
  ~RunLog();
  RunLog(const RunLog &) = delete;
  RunLog &operator=(const RunLog &) = delete;

  using Symbols = std::map<std::string, std::string>; ///< of the model, and their values
  void start(const std::string &plan, const std::string &model, int64_t firstStep, int64_t lastStep,
             uint64_t tokensPerStep, const Symbols &symbols = {});
  void step(const StepReport &report);
  void skipped(int64_t step, const std::string &reason);
  void decision(int64_t step, const std::string &what);
  /// What a guard has seen, and where it stands: models.md, section 6.
  void anomaly(const SafetyAnomaly &anomaly);
  void safety(int64_t step, const SafetyState &state, const planfile::Plan &plan);
  void evaluation(const EvaluationRecord &record);
  /// What the model made of the prompt of that number after `step` steps.
  void sample(int64_t step, size_t number, const std::string &prompt, const std::string &text);
  void checkpoint(int64_t step, const std::filesystem::path &path);
  /// `reason`: `done`, `signal` or `error`.
  void end(int64_t step, const std::string &reason);

private:
  void write(const std::string &line);
  void addEvents(const std::function<void(report::TensorBoardWriter &)> &add);

  int64_t histogramEvery;
  LineFile lines, table;
  std::unique_ptr<report::TensorBoardWriter> events;
};

} // namespace hydra::runtime
