// One page for browsers that shows a plan, with everything it needs inside.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace hydra::inspect {

/// HTML of viewer/page.html with its style, its scripts and `data` (of pageData) inside. Nothing
/// that a name in the data holds is HTML.
std::string pageOf(const nlohmann::ordered_json &data);

} // namespace hydra::inspect
