// Collectives of plans for several GPUs: NCCL's, looked up when such a plan is loaded.
#pragma once

#include "runtime/calls/CollectiveCall.h"
#include "runtime/cuda/Device.h"
#include "runtime/cuda/DeviceCall.h"

#include <memory>
#include <string>

namespace hydra::runtime {
class Channel;
}

namespace hydra::runtime::cuda {

/// The ranks of a plan's mesh, one GPU each. All ranks make it at the same time, with their GPU current.
class Nccl {
public:
  /// Throws Error when there is no NCCL, it is too old, ranks have other versions of it or share a GPU;
  /// RunEnded. `channel` must outlive it.
  Nccl(const planfile::Plan &plan, Channel &channel);
  ~Nccl();
  Nccl(const Nccl &) = delete;
  Nccl &operator=(const Nccl &) = delete;

  /// Memory that the GPUs of other ranks can read and write, where machine and library allow that.
  /// Throws Error, beginning with `what`, when there is not so much.
  static DeviceMemory allocate(size_t bytes, const std::string &what);
  /// Shows all ranks memory that `allocate` gave, of the same size on each of them and in the same order:
  /// copy engines then move what is large in it, and multiprocessors are left to what computes. Must
  /// outlive this.
  void share(const DeviceMemory &memory);

  /// Moves the bytes of a call; can be captured. Must not outlive this.
  std::unique_ptr<DeviceCall> prepareAllGather(const CollectiveSpec &spec) const;
  std::unique_ptr<DeviceCall> prepareAllToAll(const CollectiveSpec &spec) const;

  /// Throws Error when something has gone wrong since it was asked last.
  void check() const;

  /// Whether copy engines move what is large in memory that ranks share.
  bool usesEngines() const;
  /// Such as `2.28.3`.
  std::string version() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hydra::runtime::cuda
