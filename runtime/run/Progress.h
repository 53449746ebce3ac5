// What a user sees of a training run while it goes on.
#pragma once

#include "runtime/data/RowOrder.h"
#include "runtime/run/StepOutputs.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hydra::runtime {

/// One training step as it is reported.
struct StepReport {
  int64_t step = 0;                    // from 1
  double loss = 0;                     // of the batch, before the update
  double seconds = 0, dataSeconds = 0; // of the step; of these, waiting for its batch
  std::optional<double> learningRate, gradientNorm;
  uint64_t tokens = 0;                    // of the step
  std::vector<StepOutput> outputs = {};   // what it tells beside, if that is asked for
  double predictedSeconds = 0;            // 0: no prediction
  double predictedSecondsLeft = 0;        // of all steps behind it
  std::vector<data::Epochs> epochs = {};  // of the sources of text, behind the step
  std::optional<double> lossMean = {};    // of the last steps, the newest counting a tenth
  std::optional<double> clip = {};        // the bound of the gradients' norm, if there is one
  std::optional<double> clipPercent = {}; // of all steps, those whose gradients were clipped
  uint64_t allTokens = 0;                 // of all steps of the run
  uint64_t flops = 0;                     // of the step, on all ranks
  double peakFlops = 0;                   // a second, of all ranks, as the vendor says; 0: unknown
  uint64_t memoryBytes = 0;               // of the plan's segments, on a rank
  bool hasLabels = true;                  // whether any label of the batch counts, on any rank
};

struct ProgressOptions {
  int64_t firstStep = 0, lastStep = 0; // steps made before the run, and after it
  uint64_t memoryBytes = 0;
  int64_t every = 1; // plain lines: steps from one to the next
  bool live = false; // one line that is overwritten, for terminals
};

/// Writes to standard output (see `say`): on a terminal one live line, otherwise plain lines.
class Progress {
public:
  explicit Progress(const ProgressOptions &options) : options(options) {}

  void step(const StepReport &report);
  /// The loss of what is measured after `step`: its name and loss, and in words more about it.
  void evaluation(int64_t step, const std::string &name, double loss, const std::string &more);
  /// A line that stays.
  void note(const std::string &text);
  /// Ends the live line.
  void finish();

  /// The live line, before it is cut to the width of the terminal.
  std::string liveText() const;

private:
  std::string fields(const StepReport &report) const;
  /// For the steps behind the last one: as long as these were, or, where phases have longer ones,
  /// as predicted, by the same factor as they were.
  double secondsLeft() const;
  void clearLive();

  ProgressOptions options;
  StepReport last;
  double meanSeconds = 0; // of the last steps, the newest counting most
  double meanFactor = 0;  // of these, by which they took longer than predicted
  std::optional<double> heldOutLoss;
  bool liveShown = false;
  std::chrono::steady_clock::time_point drawn;
};

} // namespace hydra::runtime
