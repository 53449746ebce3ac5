// What a step of a plan should cost, before anything runs.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>

namespace hydra::report {

/// FLOPs, bytes of memory traffic and roofline time on the plan's target, for each program: by
/// phase, by layer and by class of operation. A loop counts as often as it runs, a switch as its
/// most expensive case.
std::string costText(const planfile::Plan &plan);

/// The same: {"target", "programs": [{"name", "total", "by_phase", "by_layer", "by_class"}]}, each
/// cost as {"flops", "bytes", "microseconds"}.
std::string costJson(const planfile::Plan &plan);

} // namespace hydra::report
