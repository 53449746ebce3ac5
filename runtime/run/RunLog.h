// The record of a training run for other programs: JSON lines and TensorBoard events.
#pragma once

#include "runtime/run/Progress.h"

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

/// Writes a line for each thing that happens, whole and at once. Every line is an object with
/// `event`: `start` (plan, model, symbols), `step` (loss, learning_rate, grad_norm, step_ms,
/// data_ms, tokens_per_second; epochs: passes over the text, or over each source of several by its
/// name; outputs: what the entry returns beside its loss, numbers or lists of
/// them, by name), `skipped` (reason: the update of that step was refused), `eval` (held_out_loss
/// in nats per token), `checkpoint`, `end`.
///
/// What cannot be written (a full disk) costs a line on standard error and ends that record, not
/// the run.
class RunLog {
public:
  /// Either may be missing. A resumed run appends to the file; where steps then appear twice, the
  /// later line counts. Throws Error when one cannot be opened.
  RunLog(const std::optional<std::filesystem::path> &jsonLines,
         const std::optional<std::filesystem::path> &tensorboard, bool append);
  ~RunLog();
  RunLog(const RunLog &) = delete;
  RunLog &operator=(const RunLog &) = delete;

  using Symbols = std::map<std::string, std::string>; ///< of the model, and their values
  void start(const std::string &plan, const std::string &model, int64_t firstStep, int64_t lastStep,
             uint64_t tokensPerStep, const Symbols &symbols = {});
  void step(const StepReport &report);
  void skipped(int64_t step, const std::string &reason);
  void heldOut(int64_t step, double loss);
  void checkpoint(int64_t step, const std::filesystem::path &path);
  /// `reason`: `done`, `signal` or `error`.
  void end(int64_t step, const std::string &reason);

private:
  void write(const std::string &line);
  void addEvents(const std::function<void(report::TensorBoardWriter &)> &add);
  void closeLines();

  std::filesystem::path path;
  int descriptor = -1; // of the lines; -1: none
  std::unique_ptr<report::TensorBoardWriter> events;
};

} // namespace hydra::runtime
