// What a guard has to say of the optimisations of a plan: models.md, section 6.
#pragma once

#include "runtime/report/Table.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hydra::report {

/// What programs do in another way than their safe forms.
struct OptimizationItem {
  std::string name, fast, safe;
  /// Where it does not stand with the others, which is what a pretest of it alone has shown.
  std::string status{}, detail{};
};

/// Where all of them stand: `detail` is how long they have been active, or why they are not.
struct SafetyStanding {
  std::vector<OptimizationItem> items;
  std::string status, detail;
  std::map<std::string, int64_t> anomalies; // by type
};

Table safetyTable(const SafetyStanding &standing);

/// `2 anomalies: loss_spike 1, throughput_drop 1`; one line without its end.
std::string anomaliesText(const std::map<std::string, int64_t> &anomalies);

} // namespace hydra::report
