// Attention forward and backward without the S x S matrix: shapes, masks, and the two calls.
#pragma once

#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"

#include <cstddef>
#include <cstdint>

namespace hydra::runtime {

/// Query head h reads key head h / (heads / kvHeads). Scores are scale * <q, k>. Query i sees key j
/// if every rule that is on allows it; a query that sees none gives 0, and an lse of minus
/// infinity.
struct AttentionShape {
  int64_t batch = 1;
  int64_t queries = 0, keys = 0;     // S and Sk
  int64_t heads = 1, kvHeads = 1;    // H and Hk
  int64_t headDim = 0, valueDim = 0; // widths of q and k, and of v and o
  double scale = 1.0;
  bool causal = false; // j <= i
  int64_t chunk = 0;   // when not 0: i / chunk == j / chunk
  int64_t window = 0;  // when not 0: i - j < window
};

/// The bits of a number in bf16.
struct BF16 {
  uint16_t bits;
};

/// A [batch, row, head, width] tensor: strides in elements, the width dense.
template <typename T> struct AttentionTensor {
  T *data = nullptr;
  int64_t batchStride = 0, rowStride = 0, headStride = 0;
};

/// o = softmax(scale q k^T + mask) v; lse [B, H, S] dense, or null when no backward follows. T is
/// float or BF16; everything is computed in f32 and rounded once.
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

/// Throws Error naming the first rule that the shape breaks: sizes of at least 1, heads a multiple
/// of kvHeads, widths up to 4096, a positive scale, chunk and window not negative.
void checkAttentionShape(const AttentionShape &shape);

/// Scratch for each worker, either direction.
size_t attentionScratchBytes(const AttentionShape &shape);

/// Size of AttentionBackward::workspace, in bytes:
///   roundUp64(4 * B * H * S) + parts * 4 * B * H * S * roundUp16(hd)
/// with parts = attentionBackwardParts(shape), or 0 when that is 1, hd is a multiple of 16 and dq
/// is f32.
size_t attentionWorkspaceBytes(const AttentionShape &shape, bool isF32);

/// Into how many sets the key blocks of one head are cut, so that at least 8 tasks exist:
/// min(ceil(8 / (B * Hk)), ceil(Sk / block)), where block is 64, or 16 when a width is above 256.
int64_t attentionBackwardParts(const AttentionShape &shape);

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
