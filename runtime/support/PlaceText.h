// Where an element of a tensor is, in messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hydra::support {

/// `[3,17]`, for element `index` of a dense tensor; empty for a scalar.
std::string placeText(const std::vector<int64_t> &shape, int64_t index);

} // namespace hydra::support
