// Matrix products by cuBLASLt, looked up when a plan needs them.
#pragma once

#include "runtime/cpu/Matmul.h"

#include <cuda.h>

#include <cstdint>
#include <memory>

namespace hydra::runtime::cuda {

/// cuBLASLt in one process: a handle, and a workspace that all products of one stream share.
class CublasLt {
public:
  /// Throws Error when the library is missing. `workspace` is device memory.
  CublasLt(CUdeviceptr workspace, size_t bytes);
  ~CublasLt();
  CublasLt(const CublasLt &) = delete;
  CublasLt &operator=(const CublasLt &) = delete;

  static constexpr size_t kWorkspaceBytes = size_t{32} << 20; // what NVIDIA advises for Hopper

  struct Library;

private:
  friend class CudaMatmul;
  void *handle = nullptr;
  CUdeviceptr workspace;
  size_t workspaceBytes;
};

/// A product that is ready to run. Matmul.h says what the description means.
class CudaMatmul {
public:
  /// Throws Error when the library has no algorithm. `reduced`: sums of parts may be in bf16.
  CudaMatmul(CublasLt &library, const MatmulSpec &spec, bool reduced);
  ~CudaMatmul();
  CudaMatmul(CudaMatmul &&) noexcept;

  /// The bias may be null unless the description has one.
  void run(CUdeviceptr a, CUdeviceptr b, CUdeviceptr bias, CUdeviceptr c, CUstream stream) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hydra::runtime::cuda
