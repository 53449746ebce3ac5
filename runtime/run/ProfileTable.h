// Where the time of a step goes: by class, by kernel or function, by step with its model line, and
// in exchanges between ranks.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"

#include <span>
#include <string>

namespace hydra::runtime {

/// What an executor measured over `runs` steps or calls, which took `wallSeconds` altogether.
/// `timeline`: every run of a step; empty where the device cannot say.
struct Profile {
  std::span<const StepTime> times;
  std::span<const StepRun> timeline;
  int runs = 1;
  double wallSeconds = 0;
};

/// Tables in microseconds of one step or call: phases, classes with predicted beside measured time,
/// kernels and functions, the longest steps. `of limit` is what the target's rates allow over what
/// was measured. Of a plan for several ranks also what this one exchanged by kind of collective and
/// axis of the mesh: bytes that it sent, time (waiting for other ranks included), and that part of
/// it during which nothing else ran here, beside what was predicted.
std::string profileText(const PlanFile &file, const Profile &profile);
/// The same tables in Markdown.
std::string profileMarkdown(const PlanFile &file, const Profile &profile);
/// {"runs", "step_microseconds", "phases", "classes", "functions", "exchanges"}: lists of {"name",
/// "calls", "microseconds", "flops", "bytes", "predicted_microseconds"} of one step or call, all of
/// them; exchanges are {"kind", "axis", "calls", "wire_bytes", "microseconds",
/// "predicted_microseconds", "alone_microseconds", "predicted_alone_microseconds"}, where what is
/// not known is null.
std::string profileJson(const PlanFile &file, const Profile &profile);

} // namespace hydra::runtime
