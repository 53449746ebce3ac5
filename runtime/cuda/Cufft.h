// Discrete Fourier transforms by cuFFT, looked up when a plan has some.
#pragma once

#include "runtime/calls/FftCall.h"
#include "runtime/cuda/DeviceCall.h"

#include <memory>

namespace hydra::runtime::cuda {

/// Transforms of all rows at once, ready to run. FftCall.h says what is computed.
class CudaFft final : public DeviceCall {
public:
  /// Of what it is given, rows of real numbers included, in bytes (cuFFT's guide, cufftExecR2C).
  static constexpr CUdeviceptr kAlignment = 8;

  /// Throws Error when the library is missing, or has no plan for it.
  explicit CudaFft(const FftSpec &spec);
  ~CudaFft() override;
  CudaFft(const CudaFft &) = delete;
  CudaFft &operator=(const CudaFft &) = delete;

  /// Such as 12000.
  static int version();

  size_t workspaceBytes() const override;

  /// `args`: what is transformed, and the result; they do not overlap.
  void run(std::span<const CUdeviceptr> args, CUdeviceptr workspace,
           CUstream stream) const override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hydra::runtime::cuda
