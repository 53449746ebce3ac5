// A function of a library on the GPU, ready to run.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>

namespace hydra::runtime::cuda {

class DeviceCall {
public:
  virtual ~DeviceCall() = default;

  /// Of device memory; only calls of one stream may share it.
  virtual size_t workspaceBytes() const = 0;

  /// `args`: the addresses of the step's arguments.
  virtual void run(std::span<const CUdeviceptr> args, CUdeviceptr workspace,
                   CUstream stream) const = 0;
};

} // namespace hydra::runtime::cuda
