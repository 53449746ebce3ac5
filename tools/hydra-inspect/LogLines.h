// Lines of what hydra-run --log writes.
#pragma once

#include <nlohmann/json.hpp>

#include <istream>
#include <string>

namespace hydra::inspect {

/// Whether `line`, which was just read from `lines`, is the beginning of one: of a run that is
/// writing it, or that ended when its machine failed.
inline bool isCutOff(const std::istream &lines, const std::string &line) {
  return lines.eof() && !nlohmann::json::accept(line);
}

} // namespace hydra::inspect
