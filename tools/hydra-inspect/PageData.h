// A plan as the data of its page: columns of numbers, and texts by their number in one list.
#pragma once

#include "runtime/plan/PlanFile.h"
#include "tools/hydra-inspect/ModelText.h"
#include "tools/hydra-inspect/Trace.h"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>

namespace hydra::inspect {

/// What is shown beside the plan.
struct PageExtras {
  std::optional<ModelText> model;
  std::map<std::string, MeasuredProgram> measured; ///< by program; none: no profile
};

/// {strings, palette, textures, title, facts: [[name, value]], categories, classes, phases,
/// category_paints, class_paints, files:
/// [{name, lines}], locations, tensors, persistent, programs: [{name, transient_bytes, peak,
/// steps, pieces, measured}]}. What viewer/data.js says of its columns is meant here.
nlohmann::ordered_json pageData(const runtime::PlanFile &file, const PageExtras &extras);

} // namespace hydra::inspect
