// Attention of a call's tokens over those that earlier calls left in slots.
#pragma once

#include "runtime/cpu/Attention.h"

namespace hydra::runtime {

/// `keys` [B, Hk, slots, hd] and `values` [B, Hk, slots, dv] are dense, and hold the rows of the
/// token at position t in slot t modulo their number. `position` [B]: where the call begins, or
/// negative where it is not for the sequence, which then gets zeros.
template <typename T> struct CachedAttentionTensors {
  AttentionTensor<const T> q, k, v;
  const float *position = nullptr;
  AttentionTensor<T> o;
  T *keys = nullptr, *values = nullptr;
};

/// Rows of queries, of all heads that share keys, that one task computes: fewer than a tile where
/// few sequences and heads would leave workers without one. By the shape alone.
int64_t cachedAttentionRows(const CachedAttentionShape &shape);

/// Scratch for each worker.
size_t cachedAttentionScratchBytes(const CachedAttentionShape &shape);

/// Writes the rows of k and v into their slots, then o. The bits depend on shape, inputs and the
/// level of the CPU, not on the number of threads.
template <typename T>
void cachedAttention(const CachedAttentionShape &shape, const CachedAttentionTensors<T> &tensors,
                     ThreadPool &pool, const WorkerScratch &scratch);

/// What each build of CachedAttentionKernels.cpp gives.
template <typename T> struct CachedAttentionKernels {
  /// Rows of k and v of one key head go into their slots.
  void (*remember)(const CachedAttentionShape &shape, const CachedAttentionTensors<T> &tensors,
                   int64_t batch, int64_t kvHead);
  /// Rows [block * cachedAttentionRows, ...) of the heads that share one.
  void (*attend)(const CachedAttentionShape &shape, const CachedAttentionTensors<T> &tensors,
                 int64_t batch, int64_t kvHead, int64_t block, float *scratch);
};

struct CachedAttentionBuild {
  CachedAttentionKernels<float> f32;
  CachedAttentionKernels<BF16> bf16;
  CachedAttentionKernels<F16> f16;
};

namespace baseline {
extern const CachedAttentionBuild cachedAttentionBuild;
} // namespace baseline
namespace v3 {
extern const CachedAttentionBuild cachedAttentionBuild;
} // namespace v3
namespace v4 {
extern const CachedAttentionBuild cachedAttentionBuild;
} // namespace v4

} // namespace hydra::runtime
