// Whether ranks that are to share a host do.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace hydra::runtime {

/// What is wrong where every `nodeRanks` ranks in a row are to share a host, and what to do: half
/// a line, such as `is for nodes of 2 ranks, but …`; empty: nothing. More of them on one host are
/// right too. `hosts`: the name of each rank's. `nodeRanks` is not 0.
std::string nodesProblem(std::span<const std::string> hosts, uint64_t nodeRanks);

} // namespace hydra::runtime
