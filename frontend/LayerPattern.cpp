// The shortest way to say which layers.
#include "frontend/LayerPattern.h"

#include "frontend/Text.h"

#include <fmt/format.h>

#include <algorithm>

namespace hydra::frontend {

/// The numbers for which `layers` is true, of the first `count`, each as an equation.
static std::string equations(const std::vector<bool> &layers, size_t count,
                             const std::string &left) {
  std::vector<std::string> terms;
  for (size_t i = 0; i < count; ++i)
    if (layers[i])
      terms.push_back(fmt::format("{} == {}", left, i));
  return joined(terms, " or ");
}

std::string layerCondition(const std::vector<bool> &layers) {
  const auto first = std::ranges::find(layers, !layers.front());
  const size_t change = static_cast<size_t>(first - layers.begin());
  if (std::all_of(first, layers.end(), [&](bool b) { return b != layers.front(); }))
    return fmt::format("layer {} {}", layers.front() ? "<" : ">=", change);
  for (size_t period = 2; 2 * period <= layers.size(); ++period)
    if (std::equal(layers.begin() + static_cast<ptrdiff_t>(period), layers.end(), layers.begin()))
      return equations(layers, period, fmt::format("layer - {0} * floor(layer / {0}.0)", period));
  return equations(layers, layers.size(), "layer");
}

} // namespace hydra::frontend
