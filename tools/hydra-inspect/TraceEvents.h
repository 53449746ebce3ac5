// Events of a time line in Chrome's trace event format, as hydra-run and PyTorch's profiler write
// it.
#pragma once

#include "runtime/support/InputFile.h"

#include <nlohmann/json.hpp>

#include <functional>

namespace hydra::inspect {

/// Calls `take` with each object that can be an event, in the order of the file, and keeps none: a
/// time line can have a million. Returns whether the file is such a time line; throws
/// nlohmann::json::exception where it is no JSON.
bool forEachEvent(const support::InputFile &file,
                  const std::function<void(const nlohmann::json &)> &take);

} // namespace hydra::inspect
