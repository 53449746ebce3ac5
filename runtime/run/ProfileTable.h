// Where the time of a step goes: by class, by kernel or function, and by step with its model line.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"

#include <span>
#include <string>

namespace hydra::runtime {

/// Four tables of what an executor measured over `runs` steps or calls, in microseconds of one of
/// them: phases, classes with predicted beside measured time, kernels and functions, the longest
/// steps. `of limit` is what the target's rates allow over what was measured.
/// `wallSeconds` is what those runs took altogether.
std::string profileText(const PlanFile &file, std::span<const StepTime> times, int runs,
                        double wallSeconds);

} // namespace hydra::runtime
