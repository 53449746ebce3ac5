// How a plan's collectives move bytes between the ranks that run it. Nothing is computed on the way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hydra::runtime {

/// What a rank gives and takes in one call.
struct Exchange {
  uint32_t axis = 0;            ///< of the mesh
  const std::byte *x = nullptr; ///< given
  std::byte *y = nullptr;       ///< taken
  size_t bytes = 0;             ///< of x
  const char *place = "";       ///< in the model, for messages: `layer 3, llama.mlir:20`
};

/// The ranks of a mesh, seen from one of them. All ranks make the same calls in the same order; each
/// call ends when this rank has what it receives, and its `x` may be overwritten. Throws Error when
/// another rank is gone.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// Of all axes.
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  /// y: the x of each rank of the group along the axis, in their order.
  virtual void allGather(const Exchange &exchange) = 0;

  /// x is equal pieces: one for each rank of the group along the axis. y: the pieces for this rank,
  /// in the order of who gave them.
  virtual void allToAll(const Exchange &exchange) = 0;
};

} // namespace hydra::runtime
