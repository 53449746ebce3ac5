// The ranks that run a plan together.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hydra::runtime {

/// How many ranks run the plan; 1 without a mesh.
uint64_t ranksOf(const planfile::Plan &plan);

/// Tokens that one run of the program reads on all ranks: the elements of its first input of that
/// kind, or 0.
uint64_t tokensPerRun(const planfile::Plan &plan, const planfile::Program &program);

/// `data:2,model:4`, as `hydrac --mesh` has it; empty without a mesh.
std::string meshText(const planfile::Plan &plan);

/// `data*data.node`: the names of axes.
std::string axesText(const planfile::Plan &plan, std::span<const uint32_t> axes);

/// How many ranks in a row the plan wants on one machine; 0: it does not matter, or is not known.
uint64_t nodeRanksOf(const planfile::Plan &plan);

/// Where a rank is along an axis of the mesh.
uint64_t coordinateOf(const planfile::Plan &plan, uint64_t rank, uint32_t axis);

/// The same along several axes, those named first counting most (Member in plan.fbs); 0 without
/// any.
uint64_t coordinateOf(const planfile::Plan &plan, uint64_t rank, std::span<const uint32_t> axes);

/// How many ranks that is: the product of their sizes.
uint64_t sizeOf(const planfile::Plan &plan, std::span<const uint32_t> axes);

/// How far the rank at `coordinate` along these axes is from the one at 0 that is where it is along
/// all others.
uint64_t distanceOf(const planfile::Plan &plan, std::span<const uint32_t> axes,
                    uint64_t coordinate);

/// The tensors that say where a rank is, and their values.
std::vector<std::pair<uint32_t, int32_t>> coordinateTensors(const planfile::Plan &plan,
                                                            uint64_t rank);

/// How many ranks lie between two neighbours along an axis of the mesh.
uint64_t strideOf(const planfile::Plan &plan, uint32_t axis);

} // namespace hydra::runtime
