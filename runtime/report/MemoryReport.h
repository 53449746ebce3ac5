// What a plan needs of memory, what for, and when.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>

namespace hydra::report {

/// Arena, persistent and transient bytes; for each program its peak, the bytes that are live there
/// (the rest is fragmentation) by category, activations by layer, what is live behind each phase,
/// and the ten largest values with what made them and their live ranges.
std::string memoryReportText(const planfile::Plan &plan);
std::string memoryReportJson(const planfile::Plan &plan);

/// Live bytes of the transient segment while each block of each program runs, by category.
std::string memoryTimelineCsv(const planfile::Plan &plan);
/// The same, and as "events" what comes to life and dies, at predicted times.
std::string memoryTimelineJson(const planfile::Plan &plan);

} // namespace hydra::report
