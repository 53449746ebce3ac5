// Schedules of scalars, and what changes them, in checkpoint.json.
#pragma once

#include "runtime/run/StepPolicies.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>

namespace hydra::runtime {

/// Both forms of each schedule, number by number.
nlohmann::json jsonOf(const SavedSchedules &saved);

/// The same read again; nothing for what no plan could have.
std::optional<SavedSchedules> schedulesOf(const nlohmann::json &scalars);

nlohmann::json jsonOf(const SavedPolicies &saved);
std::optional<SavedPolicies> policiesOf(const nlohmann::json &policies);

} // namespace hydra::runtime
