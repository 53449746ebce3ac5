// Where the time of a step goes: by class, by kernel or function, by step with its model line, and
// in exchanges between ranks.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"
#include "runtime/run/StepProfiler.h"

#include <span>
#include <string>
#include <vector>

namespace hydra::runtime {

/// Seconds of each run during which no other run of a step goes on; 0 for steps that are no
/// exchange.
std::vector<double> secondsAlone(std::span<const StepRun> timeline);

/// Tables in microseconds of one step or call: phases, classes with predicted beside measured time,
/// kernels and functions, the longest steps, and those whose predictions are farthest from what was
/// measured. `of limit` is what the target's rates allow over what
/// was measured. Of a plan for several ranks also what this one exchanged by kind of collective and
/// axis of the mesh: bytes that it sent, time (waiting for other ranks included), and that part of
/// it during which nothing else ran here, beside what was predicted.
std::string profileText(const PlanFile &file, const Profile &profile);
/// The same tables in Markdown.
std::string profileMarkdown(const PlanFile &file, const Profile &profile);
/// {"runs", "step_microseconds", "phases", "classes", "functions", "exchanges"}: lists of {"name",
/// "calls", "microseconds", "flops", "bytes", "predicted_microseconds"} of one step or call, all of
/// them; "predicted_step_microseconds"; "mispredictions", lists of {"name", "module", "calls",
/// "microseconds", "predicted_microseconds"}, the farthest first; exchanges are {"kind", "axis",
/// "calls", "wire_bytes", "microseconds", "predicted_microseconds", "alone_microseconds",
/// "predicted_alone_microseconds"}, where what is not known is null; and what ProfileSections.h has.
std::string profileJson(const PlanFile &file, const Profile &profile);

/// What --profile=FORM shows of the steps since the profiler began: `table`, `markdown` or `json`
/// as a text; of FILE.json nothing, which gets the time line of rank 0, or of this rank where the
/// name has a `%r` that stands for its number. Throws Error when the file cannot be written, or the
/// device has no time line.
std::string profileReport(const std::string &form, const PlanFile &file, Executor &executor,
                          StepProfiler &profiler, uint32_t rank);

} // namespace hydra::runtime
