// Zeroes the table in blocks of rows, then adds the gradient in slices of columns.
#include "runtime/cpu/Embedding.h"

#include "runtime/support/Error.h"
#include "runtime/support/Integers.h"

#include <algorithm>

using namespace hydra::runtime;
using hydra::support::ceilDiv;
using hydra::support::fail;

void hydra::runtime::embeddingGradient(const EmbeddingShape &shape, TokenIds ids,
                                       const float *gradient, float *table, ThreadPool &pool) {
  constexpr int64_t zeroBlock = int64_t{1} << 16, slice = 64;
  const int64_t elements = shape.rows * shape.width;
  pool.parallelFor(ceilDiv(elements, zeroBlock), [&](int64_t task, unsigned) {
    std::fill(table + task * zeroBlock, table + std::min(elements, (task + 1) * zeroBlock), 0.0f);
  });
  pool.parallelFor(ceilDiv(shape.width, slice), [&](int64_t task, unsigned) {
    const int64_t first = task * slice, width = std::min(slice, shape.width - first);
    for (int64_t t = 0; t < shape.tokens; ++t) {
      const int64_t id = ids[t];
      if (id < 0 || id >= shape.rows)
        fail("embedding_grad: token {} is {}, which is not in [0, {})", t, id, shape.rows);
      float *row = table + id * shape.width + first;
      const float *from = gradient + t * shape.gradientStride + first;
      for (int64_t e = 0; e < width; ++e)
        row[e] += from[e];
    }
  });
}
