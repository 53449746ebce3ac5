// What each build of AttentionKernels.cpp gives.
#pragma once

#include "runtime/cpu/Attention.h"

namespace hydra::runtime {

/// Of tensors of T: float, BF16 or F16.
template <typename T> struct AttentionKernels {
  /// Rows [block * attentionBlock, ...) of head `head` of batch `batch`: o and lse.
  void (*forward)(const AttentionShape &shape, const AttentionForward<T> &tensors, int64_t batch,
                  int64_t head, int64_t block, float *scratch);

  /// delta[b, h, i] = <dO, o> for one block of rows.
  void (*delta)(const AttentionShape &shape, const AttentionBackward<T> &tensors, int64_t batch,
                int64_t head, int64_t block);

  /// dk and dv of the key blocks in part `part` of one key head, and what they add to dq: into dq
  /// itself, or into the part's sums in the workspace.
  void (*backward)(const AttentionShape &shape, const AttentionBackward<T> &tensors, int64_t batch,
                   int64_t kvHead, int64_t part, float *scratch);

  /// dq = the sums of all parts, for one block of rows. Not needed when parts write dq itself.
  void (*gather)(const AttentionShape &shape, const AttentionBackward<T> &tensors, int64_t batch,
                 int64_t head, int64_t block);
};

struct AttentionBuild {
  const char *level;
  AttentionKernels<float> f32;
  AttentionKernels<BF16> bf16;
  AttentionKernels<F16> f16;
};

namespace baseline {
extern const AttentionBuild attentionBuild;
} // namespace baseline
namespace v3 {
extern const AttentionBuild attentionBuild;
} // namespace v3
namespace v4 {
extern const AttentionBuild attentionBuild;
} // namespace v4

} // namespace hydra::runtime
