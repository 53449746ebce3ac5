// Matrix products by cuBLASLt, looked up when a plan needs them.
#pragma once

#include "runtime/cpu/Matmul.h"

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <span>

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

/// A product that is ready to run. Matmul.h says what the description means.
class CudaMatmul {
public:
  /// Throws Error when the library has no algorithm. `reduced`: sums of parts may be in bf16.
  /// `algorithm`: number in the library's own order, best guess first.
  CudaMatmul(CublasLt &library, const MatmulSpec &spec, bool reduced, int64_t algorithm = 0);
  ~CudaMatmul();
  CudaMatmul(CudaMatmul &&) noexcept;

  /// `args`: a, b, the bias if there is one, c, and the sums if they are saved. The workspace has
  /// kWorkspaceBytes; only products of one stream may share it.
  void run(std::span<const CUdeviceptr> args, CUdeviceptr workspace, CUstream stream) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hydra::runtime::cuda
