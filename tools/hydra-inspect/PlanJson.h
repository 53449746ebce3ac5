// A plan as JSON for other programs.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <nlohmann/json.hpp>

namespace hydra::inspect {

using Json = nlohmann::ordered_json;

/// Each adds its keys to `out`; the keys mean the same as the fields of plan.fbs.
void addHeader(Json &out, const runtime::PlanFile &file);
/// `parameters`: [{name, shape, dtype, ...}], `states`, `scalars`.
void addParameters(Json &out, const planfile::Plan &plan);
void addMemory(Json &out, const planfile::Plan &plan);
void addKernels(Json &out, const planfile::Plan &plan);
void addSteps(Json &out, const planfile::Plan &plan);
/// `precision`: {policy, types: {kind: [dtype, ...]}, sum_of_1000_hundredths}.
void addPrecision(Json &out, const planfile::Plan &plan);

} // namespace hydra::inspect
