// Lines of what hydra-run --log writes.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>

namespace hydra::inspect {

/// Calls `take` with each line of a file, as JSON. One at the end that is the beginning of a line
/// is left out: of a run that is writing it, or that ended when its machine failed. Throws Error,
/// `<path><problem>: line N: ...`, for a line that is no JSON, or not what `take` asks for.
void forEachLine(const std::filesystem::path &path, const std::string &problem,
                 const std::function<void(const nlohmann::json &)> &take);

} // namespace hydra::inspect
