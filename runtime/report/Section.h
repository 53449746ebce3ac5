// A part of a report: a table for people, and all of it for programs.
#pragma once

#include "runtime/report/Table.h"

#include <nlohmann/json.hpp>

#include <string>

namespace hydra::report {

struct Section {
  std::string key; ///< of the JSON
  Table table;
  nlohmann::ordered_json json;
};

} // namespace hydra::report
