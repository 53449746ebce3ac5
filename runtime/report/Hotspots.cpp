// Sums over operations of one name in one part of the model.
#include "runtime/report/Hotspots.h"

#include "runtime/report/PlanNames.h"

#include <algorithm>
#include <array>
#include <map>

namespace hydra::report {

using namespace planfile;

namespace {

struct Hotspot {
  std::string name, module;
  double calls = 0, seconds = 0;
  std::array<double, static_cast<size_t>(Bound::MAX) + 1> byBound{}; ///< seconds

  const char *bound() const {
    const auto most = std::max_element(byBound.begin(), byBound.end());
    return EnumNameBound(static_cast<Bound>(most - byBound.begin()));
  }
};

} // namespace

Section hotspots(const Plan &plan, const Measurement &measured) {
  constexpr size_t shown = 3;
  std::map<std::pair<std::string, std::string>, Hotspot> byPlace;
  for (const StepMeasure &one : measured.steps) {
    if (one.calls == 0)
      continue;
    const std::string name = one.step->name()->str(), module = moduleText(plan, one.step->path());
    Hotspot &sum = byPlace[{name, module}];
    sum.name = name;
    sum.module = module;
    sum.calls += one.calls;
    sum.seconds += one.seconds;
    sum.byBound[static_cast<size_t>(one.step->bound())] += one.seconds;
  }
  std::vector<Hotspot> order;
  for (const auto &[place, sum] : byPlace)
    order.push_back(sum);
  std::ranges::stable_sort(order, std::ranges::greater(), &Hotspot::seconds);
  order.resize(std::min(order.size(), shown));

  const double total = measured.seconds();
  Section section{"hotspots", Table(2), nlohmann::ordered_json::array()};
  section.table.add({"hotspot", "module", "calls", "us", "share", "bound"});
  for (const Hotspot &one : order) {
    const double percent = total > 0 ? 100 * one.seconds / total : 0;
    section.table.add({one.name, one.module, fmt::format("{:.6g}", one.calls),
                       fmt::format("{:.1f}", 1e6 * one.seconds), fmt::format("{:.1f}%", percent),
                       one.bound()});
    section.json.push_back({{"name", one.name},
                            {"module", one.module},
                            {"calls", one.calls},
                            {"microseconds", 1e6 * one.seconds},
                            {"percent", percent},
                            {"bound", one.bound()}});
  }
  return section;
}

} // namespace hydra::report
