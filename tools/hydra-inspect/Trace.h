// What a profile measured: the time line that hydra-run --profile=FILE.json writes.
#pragma once

#include "runtime/plan/PlanFile.h"

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
  std::vector<MeasuredSpan> spans;
};

/// By program. Throws Error when the file is no such time line, or one of another plan.
std::map<std::string, MeasuredProgram> readTrace(const std::filesystem::path &path,
                                                 const planfile::Plan &plan);

} // namespace hydra::inspect
