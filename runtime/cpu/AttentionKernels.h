// What each build of AttentionKernels.cpp gives, and the tiles that both sides agree on.
#pragma once

#include "runtime/cpu/Attention.h"

namespace hydra::runtime {

/// Rows of q, and of k, in one tile. Wide heads take small tiles so that those fit into the cache.
constexpr int64_t attentionBlock(const AttentionShape &shape) {
  return (shape.headDim > shape.valueDim ? shape.headDim : shape.valueDim) > 256 ? 16 : 64;
}

/// Largest attentionBlock.
constexpr int64_t maxAttentionBlock = 64;

struct AttentionKernels {
  const char *level;

  /// Rows [block * attentionBlock, ...) of head `head` of batch `batch`: o and lse.
  void (*forward)(const AttentionShape &shape, const AttentionForward &tensors, int64_t batch,
                  int64_t head, int64_t block, float *scratch);

  /// delta[b, h, i] = <dO, o> for one block of rows.
  void (*delta)(const AttentionShape &shape, const AttentionBackward &tensors, int64_t batch,
                int64_t head, int64_t block);

  /// dk and dv of the key blocks in part `part` of one key head, and what they add to dq: into dq
  /// itself, or into the part's sums in the workspace.
  void (*backward)(const AttentionShape &shape, const AttentionBackward &tensors, int64_t batch,
                   int64_t kvHead, int64_t part, float *scratch);

  /// dq = the sums of all parts, for one block of rows. Not needed when parts write dq itself.
  void (*gather)(const AttentionShape &shape, const AttentionBackward &tensors, int64_t batch,
                 int64_t head, int64_t block);
};

namespace baseline {
extern const AttentionKernels attentionKernels;
} // namespace baseline
namespace v3 {
extern const AttentionKernels attentionKernels;
} // namespace v3
namespace v4 {
extern const AttentionKernels attentionKernels;
} // namespace v4

} // namespace hydra::runtime
