// The text of a model, for reports that show it beside what it became.
#pragma once

#include "runtime/plan/PlanFile.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hydra::inspect {

struct ModelText {
  uint32_t file = 0; ///< index into Plan.files
  std::vector<std::string> lines;
};

/// Throws Error when the plan comes from several files, and from none of this name; when the model
/// is not in it; and when it has fewer lines than the plan has places in it.
ModelText readModelText(const std::filesystem::path &path, const planfile::Plan &plan);

} // namespace hydra::inspect
