// What ran when, as a file for chrome://tracing and Perfetto.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"
#include "runtime/run/StepProfiler.h"

#include <filesystem>
#include <span>

namespace hydra::runtime {

/// What ran, on one clock.
struct TimeLine {
  std::span<const StepRun> runs;
  std::span<const StepSample> samples; ///< steps as a user sees them
  std::span<const HostRun> launches;
};

/// Writes a time line as JSON in the trace event format (complete events, microseconds): a row for
/// each stream, a row for each phase of the model, one for what the host waits for, and a counter
/// of the step's live bytes. The args of a step say where it stands in its program, as
/// report::PlanNode has it. On a GPU, a flow goes from the launch of a graph to the first kernel of
/// it. Throws Error when the file cannot be written.
void writeChromeTrace(const std::filesystem::path &path, const PlanFile &file,
                      const TimeLine &line);

} // namespace hydra::runtime
