// What a profile measured: the time line that hydra-run --profile=FILE.json writes.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/report/Measurement.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hydra::inspect {

/// A step, or one of the kernels that a library makes of it; microseconds since the run began.
struct MeasuredSpan {
  std::string place; ///< of the step, as report::PlanNode has it
  uint32_t stream = 0;
  double begin = 0, end = 0;
};

/// Runs of a program. `spans` are those of the run with the median time.
struct MeasuredProgram {
  size_t runs = 0;
  double microseconds = 0;              ///< of the run with the median time
  std::map<std::string, double> byStep; ///< microseconds in a run, mean; by place
  std::map<std::string, double> calls;  ///< in a run, mean; by place
  std::vector<MeasuredSpan> spans;
};

/// Programs by name; and of steps as a user waits for them the mean and what of it they wait for
/// batches, in microseconds.
struct MeasuredTrace {
  std::map<std::string, MeasuredProgram> programs;
  size_t steps = 0;
  double wall = 0, data = 0;
};

/// Throws Error when the file is no such time line, or one of another plan.
MeasuredTrace readTrace(const std::filesystem::path &path, const planfile::Plan &plan);

/// What each step of the plan took in one optimizer step or call.
report::Measurement measurementOf(const planfile::Plan &plan, const MeasuredTrace &trace);

} // namespace hydra::inspect
