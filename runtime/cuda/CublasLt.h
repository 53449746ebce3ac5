// Matmuls by cuBLASLt, looked up when a plan needs them.
#pragma once

#include "runtime/calls/MatmulCall.h"
#include "runtime/cuda/DeviceCall.h"
#include "runtime/support/Error.h"

#include <cstdint>
#include <memory>

namespace hydra::runtime::cuda {

/// cuBLASLt in one process.
class CublasLt {
public:
  /// Throws Error when the library is missing.
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt &) = delete;
  CublasLt &operator=(const CublasLt &) = delete;

  size_t version() const;

  static constexpr size_t kWorkspaceBytes = size_t{32} << 20; // what NVIDIA advises for Hopper

  struct Library;

private:
  friend class CudaMatmul;
  void *handle = nullptr;
};

/// What the addresses of a matmul's operands are multiples of, in bytes and 256 at most: the
/// library's kernels rely on it. Views of other tensors begin anywhere.
struct MatmulAlignment {
  int64_t a = 256, b = 256, c = 256, bias = 256;

  /// Of the arguments of a step.
  static MatmulAlignment of(const MatmulSpec &spec, std::span<const CUdeviceptr> args);
};

/// The library has fewer algorithms for a matmul than the number that was asked for.
class NoSuchAlgorithm : public support::Error {
  using Error::Error;
};

/// A matmul that is ready to run. MatmulCall.h says what the description means.
class CudaMatmul final : public DeviceCall {
public:
  /// Of scales of 8-bit operands, in bytes: without it the library refuses to run.
  static constexpr CUdeviceptr kScaleAlignment = 16;

  /// Throws Error when the library has no algorithm, NoSuchAlgorithm where it has some. `reduced`:
  /// sums of parts may be in bf16. `algorithm`: number in the library's own order, best guess
  /// first. `multiprocessors`: what the library should expect to have for it; 0: all.
  CudaMatmul(CublasLt &library, const MatmulSpec &spec, const MatmulAlignment &alignment,
             bool reduced, int64_t algorithm = 0, int64_t multiprocessors = 0);
  ~CudaMatmul() override;
  CudaMatmul(CudaMatmul &&) noexcept;

  /// The library's, and room for a bias that lies where the library cannot read it.
  size_t workspaceBytes() const override;

  /// `args`: a, b, the bias if there is one, the scales if it is scaled, c, and the sums if they
  /// are saved.
  void run(std::span<const CUdeviceptr> args, CUdeviceptr workspace,
           CUstream stream) const override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hydra::runtime::cuda
