// The state of a guard as checkpoints and logs have it.
#pragma once

#include "runtime/run/SafetyMonitor.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace hydra::runtime {

nlohmann::json safetyJson(const SafetyState &state);

/// Of an object of which nothing is believed. Nothing, with what is wrong with it, unless it is
/// such a state.
std::optional<SafetyState> safetyFrom(const nlohmann::json &object, std::string &problem);

} // namespace hydra::runtime
