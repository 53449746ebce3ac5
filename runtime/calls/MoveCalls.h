// What the actions that move elements take: Copy, Transfer, Fill, EmbeddingGrad, Compact. The same
// on every target.
#pragma once

#include "runtime/calls/CallSite.h"

namespace hydra::runtime {

/// `copy(source, target)`: same shape and dtype, any strides; the two share no byte.
struct CopySpec {
  TensorShape source, target;
};

/// `transfer(from, to)`: same shape and dtype, dense; the verifier has seen that one is the host's.
struct TransferSpec {
  uint64_t bytes = 0;
  bool toHost = false;
};

/// `fill(target)`: the value of the action, rounded to the dtype; any strides.
struct FillSpec {
  TensorShape target;
  double value = 0.0;
};

/// `embedding_grad(tokens, dx, grad)`: grad[v] = sum of dx[t] over tokens[t] == v. tokens [...] i32
/// or i64, dense; dx [..., D] f32, leading dimensions as tokens and mergeable into rows, last one
/// dense; grad [V, D] f32, dense.
struct EmbeddingGradSpec {
  int64_t tokens = 0, rows = 0, width = 0; ///< T, V, D
  int64_t gradientStride = 0;              ///< elements between rows of dx
  bool wide = false;                       ///< tokens are i64
};

/// `compact(mask, index, place, count)`: index: the numbers of rows whose mask is true, then -1;
/// place: where a row stands in index, or -1. mask [N] boolean, index and place [N] i32, count []
/// i32, all dense.
struct CompactSpec {
  int64_t rows = 0; ///< N
};

/// The call that a step asks for. Throws Error when its tensors or attributes do not fit.
CopySpec describeCopy(const CallSite &site);
TransferSpec describeTransfer(const CallSite &site);
FillSpec describeFill(const CallSite &site);
EmbeddingGradSpec describeEmbeddingGrad(const CallSite &site);
CompactSpec describeCompact(const CallSite &site);

} // namespace hydra::runtime
