// Whether the programs of a plan are still to be trusted, or their safe forms run: the state
// machine of models.md, section 6.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydra::runtime {

enum class SafetyStatus {
  disabled,   // the user has asked for the safe form
  pretesting, // nothing is known yet
  monitoring, // the pretest passed; steps are watched
  enabled,    // they were watched long enough
  failed,     // the pretest failed: the safe form runs
  fallback,   // a step was not as it should be: the safe form runs
};

/// `MONITORING`.
std::string_view statusName(SafetyStatus status);
/// Nothing for a name that no status has.
std::optional<SafetyStatus> statusOf(std::string_view name);

/// All that a checkpoint holds of it. Steps are numbers of steps made.
struct SafetyState {
  SafetyStatus status = SafetyStatus::pretesting;
  std::string configuration; // of plan and device, in 12 hexadecimal digits
  std::string reason;        // of DISABLED, FAILED and FALLBACK
  /// The optimization that a pretest gave up, alone, and why; empty: none. All others go on, and
  /// status and steps are theirs.
  std::string without, withoutReason;
  std::optional<int64_t> enabledAt, disabledAt;
  std::map<std::string, int64_t> anomalies; // by type; slow steps only where they count
  int64_t counted = 0;                      // those that count towards a fallback
  std::optional<double> lossMean;           // of the steps that were watched, the newest a tenth
};

/// What a step was like.
struct SafetyObservation {
  int64_t step = 0; // its number, from 1
  double loss = 0;
  std::optional<double> gradientNorm; // nothing where the plan computes none
  double tokensPerSecond = 0;
  bool hasLabels = true; // whether any counts; else a finite loss tells nothing
};

struct SafetyAnomaly {
  int64_t step = 0;
  std::string type; // loss_spike, throughput_drop, nan_grad, inf_grad, nan_loss or inf_loss
  double value = 0, threshold = 0;
};

struct SafetyOptions {
  int64_t window = 100; // steps that are watched
  /// Whether slow steps count, and not only are told of: how fast a step is, follows from the
  /// machine, and with it what the run computes would.
  bool countsThroughput = false;
  /// Whether refused steps are how a scale of the loss is found: then they are told of alone.
  bool scalesLoss = false;
};

class SafetyMonitor {
public:
  /// Goes on from a state of the same configuration, or begins at PRETESTING.
  SafetyMonitor(const SafetyOptions &options, SafetyState begin)
      : options(options), now(std::move(begin)) {}

  /// The safe form runs because the user wants it, after `step` steps.
  void disable(int64_t step, const std::string &reason);
  /// The result of a pretest after `step` steps; an empty problem is none. A state that was reached
  /// before a passed pretest stays.
  void pretested(int64_t step, const std::string &problem);
  /// After such a pretest that failed, one without this optimization has passed: steps without it
  /// are watched from now on.
  void giveUp(int64_t step, const std::string &optimization, const std::string &problem);
  /// Watches a step: returns what was not as it should be, and may fall back behind it.
  std::vector<SafetyAnomaly> observe(const SafetyObservation &seen);

  /// Whether steps are looked at.
  bool watches() const { return now.status == SafetyStatus::monitoring; }
  /// Whether the safe form runs.
  bool isSafe() const {
    return now.status == SafetyStatus::disabled || now.status == SafetyStatus::failed ||
           now.status == SafetyStatus::fallback;
  }
  const SafetyState &state() const { return now; }

private:
  void stop(SafetyStatus status, int64_t step, const std::string &reason);

  const SafetyOptions options;
  SafetyState now;
  std::optional<double> rateMean; // tokens a second; not of an earlier process
};

} // namespace hydra::runtime
