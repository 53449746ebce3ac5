// What the actions Attention and AttentionGrad compute: the same on every target.
#pragma once

#include "runtime/calls/CallSite.h"

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
  double cap = 0.0;    // when not 0: scores are cap * tanh(score / cap), before the mask
};

/// Rows of q, and of k, in one tile. Wide heads take small tiles so that those fit into the cache.
constexpr int64_t attentionBlock(const AttentionShape &shape) {
  return (shape.headDim > shape.valueDim ? shape.headDim : shape.valueDim) > 256 ? 16 : 64;
}

/// Throws Error naming the first rule that the shape breaks: sizes of at least 1, heads a multiple
/// of kvHeads, widths up to 4096, a positive scale, cap, chunk and window not negative.
void checkAttentionShape(const AttentionShape &shape);

/// Size of AttentionBackward::workspace, in bytes:
///   roundUp64(4 * B * H * S) + parts * 4 * B * H * S * roundUp16(hd)
/// with parts = attentionBackwardParts(shape), or 0 when that is 1, hd is a multiple of 16 and dq
/// is f32.
size_t attentionWorkspaceBytes(const AttentionShape &shape, bool isF32);

/// Into how many sets the key blocks of one head are cut, so that at least 8 tasks exist:
/// min(ceil(8 / (B * Hk)), ceil(Sk / block)), where block is 64, or 16 when a width is above 256.
int64_t attentionBackwardParts(const AttentionShape &shape);

/// Whether the parts of the backward pass write dq itself.
bool attentionPartsWriteDq(const AttentionShape &shape, bool isF32);

/// Strides, in elements, of a [batch, row, head, width] argument whose width is dense.
struct AttentionLayout {
  int64_t batch = 0, row = 0, head = 0;

  auto operator<=>(const AttentionLayout &) const = default;
};

/// `attention(q, k, v, o [, lse])`: AttentionCall.cpp says more.
struct AttentionSpec {
  AttentionShape shape;
  support::DType dtype = support::DType::F32; ///< of all tensors but lse
  AttentionLayout q, k, v, o;
  bool hasLse = false;
};

/// `attention_grad(dO, q, k, v, o, lse, dq, dk, dv, workspace)`.
struct AttentionGradSpec : AttentionSpec {
  AttentionLayout dO, dq, dk, dv;
};

/// Attention of the `calls` tokens of each sequence that a call has, over those that earlier calls
/// left in `slots`: the row of the token at position t is in slot t modulo their number, where the
/// call puts its own first. A query sees tokens up to its own that the call does not overwrite.
struct CachedAttentionShape {
  int64_t batch = 1;
  int64_t calls = 1, slots = 0;      // C
  int64_t heads = 1, kvHeads = 1;    // H and Hk
  int64_t headDim = 0, valueDim = 0; // widths of q and k, and of v and o
  double scale = 1.0;
  int64_t chunk = 0;  // when not 0: from t - t mod chunk
  int64_t window = 0; // when not 0: from t - window + 1
  double cap = 0.0;   // when not 0: scores are cap * tanh(score / cap)
};

/// Rows of queries, and slots, in one tile.
constexpr int64_t cachedAttentionTile(const CachedAttentionShape &shape) {
  return (shape.headDim > shape.valueDim ? shape.headDim : shape.valueDim) > 256 ? 16 : 64;
}

/// `cached_attention(q, k, v, position, o, keys, values)`: AttentionCall.cpp says more.
struct CachedAttentionSpec {
  CachedAttentionShape shape;
  support::DType dtype = support::DType::F32; ///< of all tensors but position
  AttentionLayout q, k, v, o;
};

/// The call that a step asks for. Throws Error when its tensors or attributes do not fit.
AttentionSpec describeAttention(const CallSite &site);
AttentionGradSpec describeAttentionGrad(const CallSite &site);
CachedAttentionSpec describeCachedAttention(const CallSite &site);
/// Throws Error unless the workspace is what the CPU needs.
void checkAttentionWorkspace(const CallSite &site, const AttentionGradSpec &spec);

} // namespace hydra::runtime
