// What a step of a plan should cost, before anything runs.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>

namespace hydra::report {

/// FLOPs, bytes of memory traffic and roofline time on the plan's target, for each program: by
/// phase, by class of operation, by layer and by part of the model. A loop counts as often as it
/// runs, a switch as its most expensive case. Of a plan for several ranks also the predicted time
/// of a step and of each program that exchanges something: what each rank sends by kind of
/// collective and axis of the mesh, how long that takes, how much of it nothing hides, and the
/// three collectives with most of that; last, in a line, what a rank sends and how much memory it
/// needs, and the tokens a second of all.
std::string costText(const planfile::Plan &plan);
/// The same tables in Markdown.
std::string costMarkdown(const planfile::Plan &plan);

/// The same: {"target", "programs": [{"name", "total", "by_phase", "by_layer", "by_class",
/// "by_module"}]}, each cost as {"flops", "bytes", "microseconds"}; "mesh" (empty for one rank) and
/// "ranks"; and, as "step" and as "predicted" of each program, {"microseconds",
/// "compute_microseconds", "wire_microseconds", "exposed_microseconds", "wire_bytes", "exchanges":
/// [{"kind", "axis", "calls", "wire_bytes", "microseconds", "alone_microseconds",
/// "exposed_microseconds", "own_copy_microseconds"}], "hidden_microseconds"}; at the end "tokens"
/// of a step of all ranks, 0 where it reads none, "tokens_per_second" as predicted, or null, and
/// "memory_bytes" of each.
std::string costJson(const planfile::Plan &plan);

} // namespace hydra::report
