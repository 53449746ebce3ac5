// What the actions that ranks meet in take: AllGather, AllToAll. The same on every target.
#pragma once

#include "runtime/calls/CallSite.h"
#include "runtime/support/EngineBytes.h"

#include <string>

namespace hydra::runtime {

/// `all_gather(x, y)` and `all_to_all(x, y)`: dense, of one dtype; y has as many elements as the x of
/// all ranks along the axis together, or as x.
struct CollectiveSpec {
  uint32_t axis = 0; ///< of the plan's mesh
  uint64_t ranks = 0;
  uint64_t bytes = 0; ///< of x
  std::string place;  ///< in the model: `layer 3, llama.mlir:20`
};

using support::kEngineBytes;

/// The call that a step asks for. Throws Error when its tensors do not fit, or the mesh has no such axis.
CollectiveSpec describeAllGather(const CallSite &site);
CollectiveSpec describeAllToAll(const CallSite &site);

} // namespace hydra::runtime
