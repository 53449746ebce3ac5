// What is about to run: plan, model, memory, device, data.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "runtime/run/Executor.h"

#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// An aligned table of two columns; `more` are rows that only the caller knows, such as the origin
/// of the data.
std::string startupTable(const PlanFile &file, const Executor &executor,
                         const std::vector<std::pair<std::string, std::string>> &more);

} // namespace hydra::runtime
