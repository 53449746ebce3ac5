// The ranks that run a plan together.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>

namespace hydra::runtime {

/// How many ranks run the plan; 1 without a mesh.
uint64_t ranksOf(const planfile::Plan &plan);

/// `data:2,model:4`, as `hydrac --mesh` has it; empty without a mesh.
std::string meshText(const planfile::Plan &plan);

/// Where a rank is along an axis of the mesh.
uint64_t coordinateOf(const planfile::Plan &plan, uint64_t rank, uint32_t axis);

/// How many ranks lie between two neighbours along an axis of the mesh.
uint64_t strideOf(const planfile::Plan &plan, uint32_t axis);

} // namespace hydra::runtime
