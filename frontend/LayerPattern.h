// Which layers of a model are of a kind, as a condition on the number of the layer.
#pragma once

#include <string>
#include <vector>

namespace hydra::frontend {

/// An expression over `layer` that is true where `layers` is: `layer >= 4`, or of a pattern that
/// repeats `layer - 6 * floor(layer / 6.0) == 5`, so that it holds for other numbers of layers too;
/// else the numbers one by one. There must be a layer of each kind.
std::string layerCondition(const std::vector<bool> &layers);

} // namespace hydra::frontend
