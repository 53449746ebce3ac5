// What a run's directory tells: how it was started, and what came of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hydra::inspect {

struct RunStep {
  double loss = 0, milliseconds = 0, tokensPerSecond = 0;
  std::optional<double> learningRate, gradientNorm, utilization; ///< the last of the vendor's peak
  uint64_t tokens = 0;                                           ///< of all steps so far
};

struct RunSummary {
  std::string directory;
  std::map<std::string, std::string> settings; ///< plan, model, symbols, flags: by name, in words
  std::vector<std::pair<std::string, std::string>> starts; ///< when, and where at which step
  std::map<int64_t, RunStep> steps;
  std::map<std::string, std::map<int64_t, double>>
      evaluations;      ///< losses by set; `held out` for what is held out
  int64_t lastStep = 0; ///< that the run is to reach
  int64_t skipped = 0;
  std::vector<int64_t> checkpoints;
  std::string ended; ///< `done`, `signal`, `error`; empty: it has not, or was killed
};

/// Of a directory as hydra-run --run makes it. Throws Error when it is none, or damaged.
RunSummary readRun(const std::filesystem::path &directory);

/// One run, or two side by side: settings that differ, then losses, steps, tokens, times.
std::string runText(const std::vector<RunSummary> &runs, bool markdown);
/// A list of objects: models.md R26's arrays of steps and scalars, beside settings and starts.
std::string runJson(const std::vector<RunSummary> &runs);

} // namespace hydra::inspect
