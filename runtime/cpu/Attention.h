// Attention forward and backward without the S x S matrix: shapes, masks, and the two calls.
#pragma once

#include "runtime/calls/AttentionCall.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"

#include <cstddef>

namespace hydra::runtime {

/// The bits of a number in bf16, and in f16.
struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

/// A [batch, row, head, width] tensor: strides in elements, the width dense.
template <typename T> struct AttentionTensor {
  T *data = nullptr;
  int64_t batchStride = 0, rowStride = 0, headStride = 0;
};

/// o = softmax(scale q k^T + mask) v; lse [B, H, S] dense, or null when no backward follows. T is
/// float, BF16 or F16; everything is computed in f32 and rounded once.
template <typename T> struct AttentionForward {
  AttentionTensor<const T> q, k, v;
  AttentionTensor<T> o;
  float *lse = nullptr;
};

/// dq, dk, dv (overwritten) from the gradient `dO` of o and what the forward left.
template <typename T> struct AttentionBackward {
  AttentionTensor<const T> q, k, v, o, dO;
  const float *lse = nullptr;
  AttentionTensor<T> dq, dk, dv;
  void *workspace = nullptr; // aligned to 64
};

/// Scratch for each worker, either direction.
size_t attentionScratchBytes(const AttentionShape &shape);

/// Both cut their work by the shape alone and add in a fixed order: the bits depend on shape,
/// inputs and the level of the CPU (attentionLevel), not on the number of threads.
template <typename T>
void attentionForward(const AttentionShape &shape, const AttentionForward<T> &tensors,
                      ThreadPool &pool, const WorkerScratch &scratch);
template <typename T>
void attentionBackward(const AttentionShape &shape, const AttentionBackward<T> &tensors,
                       ThreadPool &pool, const WorkerScratch &scratch);

/// Which build of the kernels this CPU runs: "x86-64-v4" (AVX-512), "x86-64-v3" (AVX2 and FMA; the
/// same bits as v4, because vectors are 16 wide in both) or "baseline" (no FMA: other bits).
const char *attentionLevel();

} // namespace hydra::runtime
