// The gradient of an embedding table: rows summed by token id, in a fixed order.
#pragma once

#include "runtime/cpu/ThreadPool.h"

#include <cstdint>

namespace hydra::runtime {

/// Token ids, dense [tokens], of one of the two types.
struct TokenIds {
  const void *data = nullptr;
  bool wide = false; // i64; otherwise i32

  int64_t operator[](int64_t token) const {
    return wide ? static_cast<const int64_t *>(data)[token]
                : static_cast<const int32_t *>(data)[token];
  }
};

struct EmbeddingShape {
  int64_t tokens = 0, rows = 0, width = 0; // T, V, D
  int64_t gradientStride = 0;              // elements between rows of the gradient
};

/// table[v] = sum over t, in rising order, with ids[t] == v of gradient[t]: table [V, D] dense,
/// gradient [T, D] in f32. Rows that no token names are 0. Throws Error when an id is not in [0,
/// V).
///
/// Traffic: T * D * 4 bytes read, V * D * 4 written, and T * D * 8 read and written in the table.
/// Limit: memory. Columns are cut into slices of 64, so workers never share a cache line of the
/// table and every element is summed by one of them in the order of tokens.
void embeddingGradient(const EmbeddingShape &shape, TokenIds ids, const float *gradient,
                       float *table, ThreadPool &pool);

} // namespace hydra::runtime
