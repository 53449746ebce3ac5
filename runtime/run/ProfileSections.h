// The parts of a profile that go by the whole of a step: its phases, operations, modules, copies,
// and advice.
#pragma once

#include "runtime/report/Section.h"
#include "runtime/run/ProfileTable.h"

#include <vector>

namespace hydra::runtime {

/// `step`: {"tokens_per_second", "parts": [{"name", "mean_ms", "deviation_ms", "min_ms", "p50_ms",
/// "p99_ms", "percent"}]}: waiting for data, the phases, `between` (the device runs nothing), and
/// `step`. Where streams run beside each other, phases may take more than the step. Then the
/// sections of runtime/report: operations, values that they make, modules, copies, advice.
std::vector<report::Section> profileSections(const PlanFile &file, const Profile &profile);

} // namespace hydra::runtime
