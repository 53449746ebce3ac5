// A run as a directory: what it was started with, and everything that it writes.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hydra {

struct RunOptions;

/// Flags and their values, in the order of a command line; `plan` is the one without a flag.
using Arguments = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// A directory of `--run`:
///
///     run.json         arguments, schedules, plan and model; when, where, at which step it started
///     plan.fb          the plan
///     log.jsonl, log.csv, tensorboard/   what --log, --csv and --tensorboard write
///     checkpoints/     what --save writes
///     pretests.jsonl   of a plan with safe forms, what comparing them has shown
class RunDirectory {
public:
  static constexpr const char *kFile = "run.json", *kPlan = "plan.fb",
                              *kCheckpoints = "checkpoints", *kPretests = "pretests.jsonl";

  explicit RunDirectory(std::filesystem::path directory) : path(std::move(directory)) {}

  /// Whether a directory holds a run.
  static bool isRun(const std::filesystem::path &directory);
  /// What the run there was started with last, for a process that begins elsewhere. Throws Error
  /// when that is damaged.
  Arguments arguments() const;

  /// Where --save, --log, --csv and --tensorboard go.
  void setPaths(RunOptions &options) const;
  /// A start as run.json has it.
  struct Start {
    const RunOptions *options;
    int64_t step;
    uint64_t ranks;
    std::vector<std::pair<std::string, std::string>> schedules; // of the numbers of its steps
    std::vector<std::pair<std::string, std::string>> facts;     // of machine and device
  };
  /// Throws Error when a run is there that is not gone on with.
  void check(bool resumes) const;
  /// Makes the directory, if it is missing. Throws Error when it cannot, or as `check` does.
  void open(bool resumes) const;
  /// Writes the plan and run.json, each whole. Throws Error when it cannot.
  void write(const runtime::PlanFile &file, const Start &start) const;

private:
  std::filesystem::path path;
};

/// Flags whose values are paths become independent of the working directory.
Arguments withAbsolutePaths(Arguments arguments);

} // namespace hydra
