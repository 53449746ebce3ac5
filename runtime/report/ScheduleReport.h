// When every step of a plan should run.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>

namespace hydra::report {

/// The predicted schedule of each program, in the order in which steps begin: stream, begin and end
/// in microseconds since the program began, how long the step takes alone, what the rates of the
/// target allow, class, step and part of the model. What is inside of loops and switches is left
/// out: it has a part of their time.
std::string scheduleText(const planfile::Plan &plan);

/// {"target", "measured": what predictions are made from, or null, "step_microseconds", "programs":
/// [{"name", "microseconds", "steps": [{"place", "stream", "begin", "end", "alone_microseconds",
/// "limit_microseconds", "class", "phase", "name", "path"}]}]}. Loops and switches have no class,
/// phase, path and limit. Exchanges of the program's own list also have "wire_bytes",
/// "own_copy_microseconds", "nothing_beside_microseconds" and "exposed_microseconds", as
/// ExchangeSum has their sums.
std::string scheduleJson(const planfile::Plan &plan);

} // namespace hydra::report
