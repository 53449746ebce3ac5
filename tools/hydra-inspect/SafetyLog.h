// What the guard of a run with safe forms has done, from the log of the run.
#pragma once

#include "runtime/report/SafetyTable.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hydra::inspect {

struct SafetyLog {
  std::string file;
  report::SafetyStanding standing; ///< the last; anomalies are all of the log
  struct Change {
    int64_t step = 0;
    std::string status, reason;
  };
  std::vector<Change> changes; ///< of the status, the first one too
  struct Anomaly {
    int64_t step = 0;
    std::string optimization, type;
    double value = 0, threshold = 0; ///< the first may be no number
    double timestamp = 0;            ///< seconds since 1970
  };
  std::vector<Anomaly> anomalies;
  struct Form {
    double loss = 0, gradientNorm = 0,
           milliseconds = 0; ///< of these the first two may be no numbers
    uint64_t bytes = 0;
  };
  /// The plan without one optimization, and what that shows of it.
  struct Alone {
    std::string name, status, message;
    Form without;
  };
  struct Pretest {
    std::string time, configuration, device, problem; ///< the last is empty if it passed
    int64_t step = 0;
    Form fast, safe;
    std::vector<Alone> alone; ///< those that were tried so
  };
  std::vector<Pretest> pretests;
};

/// Of what hydra-run --log or --run wrote: the log or the directory, with the pretests beside. What
/// was done behind the step that a run was resumed from does not count. Throws Error when it is no
/// such log, or of a plan without safe forms.
SafetyLog readSafetyLog(const std::filesystem::path &path);

/// Where each optimisation stands; how the status changed; anomalies; pretests.
std::string safetyText(const SafetyLog &log, bool markdown);
/// {"file", "status", "detail", "optimizations": [{"name", "fast", "safe"}], "anomaly_counts",
/// "changes": [{"step", "status", "reason"}], "anomalies": [{"step", "optimization",
/// "anomaly_type", "value", "threshold", "timestamp"}], "pretests": [{"timestamp", "step",
/// "config_hash", "gpu_name", "error_message", "fast", "safe": {"loss", "grad_norm", "step_ms",
/// "memory_bytes"}, "results": [{"optimization", "status", "error_message", "without": as
/// fast}]}]}, of which the results are those that were tried alone.
std::string safetyLogJson(const SafetyLog &log);

} // namespace hydra::inspect
