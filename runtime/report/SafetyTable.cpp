// A row for each optimisation.
#include "runtime/report/SafetyTable.h"

#include <fmt/ranges.h>

namespace hydra::report {

Table safetyTable(const SafetyStanding &standing) {
  Table table(5);
  table.add({"optimization", "fast", "safe", "status", ""});
  for (const OptimizationItem &item : standing.items)
    if (item.status.empty())
      table.add({item.name, item.fast, item.safe, standing.status, standing.detail});
    else
      table.add({item.name, item.fast, item.safe, item.status, item.detail});
  return table;
}

std::string anomaliesText(const std::map<std::string, int64_t> &anomalies) {
  int64_t total = 0;
  std::vector<std::string> counts;
  for (const auto &[type, count] : anomalies) {
    total += count;
    counts.push_back(fmt::format("{} {}", type, count));
  }
  if (total == 0)
    return "no anomalies";
  return fmt::format("{} anomal{}: {}", total, total == 1 ? "y" : "ies", fmt::join(counts, ", "));
}

} // namespace hydra::report
