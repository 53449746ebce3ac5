// How a plan's collectives move bytes between the ranks that run it. Nothing is computed on the way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hydra::runtime {

/// The ranks of a mesh, seen from one of them. All ranks make the same calls in the same order; each
/// call ends when this rank has what it receives, and its `x` may be overwritten. Throws Error when
/// another rank is gone.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// Of all axes.
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  /// y: the `bytes` of x of each rank of the group along the axis, in their order.
  virtual void allGather(uint32_t axis, const std::byte *x, std::byte *y, size_t bytes) = 0;

  /// x, of `bytes` in all, is equal pieces: one for each rank of the group along the axis. y: the pieces
  /// for this rank, in the order of who gave them.
  virtual void allToAll(uint32_t axis, const std::byte *x, std::byte *y, size_t bytes) = 0;
};

} // namespace hydra::runtime
