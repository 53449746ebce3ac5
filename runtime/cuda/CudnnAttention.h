// Attention by cuDNN's fused kernels, looked up when a plan asks for them.
#pragma once

#include "runtime/cuda/DeviceCall.h"
#include "runtime/support/DType.h"

#include <array>
#include <cstdint>
#include <memory>

namespace hydra::runtime::cuda {

/// One attention over 16-bit tensors `[batch, rows, heads, width]`; strides in elements, of the
/// first three dimensions (the last is dense). Key heads divide heads.
struct CudnnAttentionSpec {
  using Strides = std::array<int64_t, 3>;
  support::DType element = support::DType::BF16; ///< or f16
  int64_t batch = 0, queries = 0, keys = 0, heads = 0, keyHeads = 0, width = 0, valueWidth = 0;
  double scale = 1.0;
  bool causal = false; ///< a query sees the keys up to its own number
  Strides q = {}, k = {}, v = {}, o = {};
  Strides dO = {}, dq = {}, dk = {}, dv = {}; ///< of the backward pass

  auto operator<=>(const CudnnAttentionSpec &) const = default;
};

/// cuDNN in one process.
class Cudnn {
public:
  /// Throws Error when the library is missing or too old.
  Cudnn();
  ~Cudnn();
  Cudnn(const Cudnn &) = delete;
  Cudnn &operator=(const Cudnn &) = delete;

  /// Such as 91900.
  static size_t version();

  struct Library;

private:
  friend class CudnnAttention;
  void *handle = nullptr;
};

/// An attention that is ready to run.
///
///   forward    q, k, v, o [, lse]
///   backward   dO, q, k, v, o, lse, dq, dk, dv    (its sums depend on the order of blocks)
///
/// lse `[batch, heads, queries]` f32, dense: the logarithm of the sum of exponentials.
class CudnnAttention final : public DeviceCall {
public:
  enum class Pass { Forward, ForwardSaving, Backward };

  /// Throws Error when the library has no kernel for it.
  CudnnAttention(Cudnn &library, const CudnnAttentionSpec &spec, Pass pass);
  ~CudnnAttention() override;
  CudnnAttention(CudnnAttention &&) noexcept;

  size_t workspaceBytes() const override;

  void run(std::span<const CUdeviceptr> args, CUdeviceptr workspace,
           CUstream stream) const override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace hydra::runtime::cuda
