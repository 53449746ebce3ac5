// The ranks that run a plan together.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// How many ranks run the plan; 1 without a mesh.
uint64_t ranksOf(const planfile::Plan &plan);

/// `data:2,model:4`, as `hydrac --mesh` has it; empty without a mesh.
std::string meshText(const planfile::Plan &plan);

/// How many ranks in a row the plan wants on one machine; 0: it does not matter, or is not known.
uint64_t nodeRanksOf(const planfile::Plan &plan);

/// Where a rank is along an axis of the mesh.
uint64_t coordinateOf(const planfile::Plan &plan, uint64_t rank, uint32_t axis);

/// The tensors that say where a rank is, and their values.
std::vector<std::pair<uint32_t, int32_t>> coordinateTensors(const planfile::Plan &plan,
                                                            uint64_t rank);

/// How many ranks lie between two neighbours along an axis of the mesh.
uint64_t strideOf(const planfile::Plan &plan, uint32_t axis);

} // namespace hydra::runtime
