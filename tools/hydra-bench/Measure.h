// One row of a sweep: what hydrac predicts of its plan, and what hydra-run measures.
#pragma once

#include "tools/hydra-bench/Definition.h"

#include <filesystem>
#include <string>
#include <vector>

namespace hydra::bench {

struct Programs {
  std::filesystem::path hydrac, run;
  double seconds = 0; ///< that each may take; 0: any
};

/// Median, mean, deviation (of the sample), minimum, maximum and the 99th percentile (nearest rank)
/// of at least one time in seconds: {"median_ms", "mean_ms", "deviation_ms", "min_ms", "max_ms",
/// "p99_ms"}.
Json statisticsOf(std::vector<double> seconds);

/// {"name", "axes", "status": "ok" | "does not fit" | "failed", "reason", "compile_seconds",
/// "memory": {"arena_bytes", ..., "programs": {NAME: {...}}}, "cost": {"step", "programs", ...},
///  "tokens": of a step, "predicted": {"tokens_per_second"}, "program": what the reports
/// say of the first program, "bench": {statistics, "total_s",
///  "warm_up_s", "steps", "tokens_per_second",
///  ...}, "profile": {"runs", "steps": [{"phase", "class", "name", "line", "calls", "us"}]}}: what
///  is not
/// asked for, or could not be measured, is missing.
class Measurer {
public:
  Measurer(const Definition &definition, Programs programs)
      : definition(definition), programs(std::move(programs)) {}

  /// `folder` is for the plan and what hydra-run writes. A plan is made anew only where its flags
  /// are not those of the row before.
  Json measure(const Case &one, const std::filesystem::path &folder);

private:
  void compile(const Case &one, const std::filesystem::path &plan, Json &row);
  void run(const Case &one, const std::filesystem::path &folder, Json &row);

  const Definition &definition;
  Programs programs;
  std::vector<std::string> compiled; ///< the flags of the plan that is there
  Json predicted;                    ///< what is said of it
};

} // namespace hydra::bench
