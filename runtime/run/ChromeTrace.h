// What ran when, as a file for chrome://tracing and Perfetto.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"

#include <filesystem>
#include <span>

namespace hydra::runtime {

/// Writes the runs as JSON in the trace event format (complete events, microseconds): a row for
/// each stream, a row for each phase of the model, and a counter of the step's live bytes. The args
/// of a step say where it stands in its program, as report::PlanNode has it. Throws Error when the
/// file cannot be written.
void writeChromeTrace(const std::filesystem::path &path, const PlanFile &file,
                      std::span<const StepRun> runs);

} // namespace hydra::runtime
