// Tiles of attention: how rows are packed for the matmuls of TileMath.h. Like it, for code that is
// built once for each CPU level.
#pragma once

#include "runtime/cpu/TileMath.h"

namespace hydra::runtime::HYDRA_CPU_LEVEL {
namespace {

constexpr float log2e = 1.44269504f;

/// Hyperbolic tangents to 2 units in the last place, for scores under a cap. |x| < 0.625: x + x z
/// P(z) with z = x², as in kernels of rows (VectorMath.cpp); else (1 - e) / (1 + e) with e = e^(-2
/// |x|) and the sign of x.
HYDRA_INLINE Vec tanh(Vec x) {
  const Vec z = x * x;
  Vec p = splat(-0.00568127864f);
  p = p * z + splat(0.0206186197f);
  p = p * z + splat(-0.0537336952f);
  p = p * z + splat(0.133313734f);
  p = p * z + splat(-0.333332795f);
  const Vec near = x * z * p + x, magnitude = vectorMax(x, -x);
  const Vec least = vectorMax(-magnitude, splat(-20.0f)); // beyond it the result is 1
  const Vec power = exp2(least * splat(2.0f * log2e));
  const Vec far = (splat(1.0f) - power) / (splat(1.0f) + power);
  return magnitude < splat(0.625f) ? near : x < Vec{} ? -far : far;
}

HYDRA_INLINE IntVec loadInts(const int32_t *from) {
  IntVec v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

HYDRA_INLINE void fill(float *to, int64_t count, float value) {
  for (int64_t i = 0; i < count; i += lanes)
    store(to + i, splat(value));
}

/// Copies rows of `width` into rows of `padded` floats, zeros behind.
template <typename T>
void packRows(const T *from, int64_t stride, int64_t rows, int64_t width, int64_t padded,
              float *to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t e = 0; e < width; ++e)
      to[r * padded + e] = widen(from[r * stride + e]);
    for (int64_t e = width; e < padded; ++e)
      to[r * padded + e] = 0.0f;
  }
}

/// Transposes 16 x 16 numbers: in step `distance` of 8, 4, 2, 1, row i and row i + distance swap
/// the blocks of `distance` lanes beside the diagonal.
HYDRA_INLINE void transposeLanes(Vec (&rows)[lanes]) {
#define HYDRA_SWAP_BLOCKS(distance, low, high)                                                     \
  for (int64_t i = 0; i < lanes; ++i)                                                              \
    if ((i & (distance)) == 0) {                                                                   \
      const Vec x = rows[i], y = rows[i + (distance)];                                             \
      rows[i] = __builtin_shufflevector low;                                                       \
      rows[i + (distance)] = __builtin_shufflevector high;                                         \
    }
  HYDRA_SWAP_BLOCKS(8, (x, y, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                    (x, y, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
  HYDRA_SWAP_BLOCKS(4, (x, y, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                    (x, y, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
  HYDRA_SWAP_BLOCKS(2, (x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                    (x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
  HYDRA_SWAP_BLOCKS(1, (x, y, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
                    (x, y, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#undef HYDRA_SWAP_BLOCKS
}

/// to[e][r] = from[r][e], for r up to a multiple of 16 (zeros behind `rows`).
template <typename T>
void packTransposed(const T *from, int64_t stride, int64_t rows, int64_t width, float *to,
                    int64_t ld) {
  for (int64_t r = 0; r < rows; r += lanes) {
    int64_t e = 0;
    for (; r + lanes <= rows && e + lanes <= width; e += lanes) {
      Vec block[lanes];
      for (int64_t i = 0; i < lanes; ++i)
        block[i] = load(from + (r + i) * stride + e);
      transposeLanes(block);
      for (int64_t i = 0; i < lanes; ++i)
        store(to + (e + i) * ld + r, block[i]);
    }
    for (; e < width; ++e)
      for (int64_t i = r; i < r + lanes; ++i)
        to[e * ld + i] = i < rows ? widen(from[i * stride + e]) : 0.0f;
  }
}

/// Takes pieces of the scratch, each aligned to a cache line.
struct Pieces {
  float *next;
  float *take(int64_t floats) {
    float *piece = next;
    next += roundUp(floats, lanes);
    return piece;
  }
};

template <typename T>
HYDRA_INLINE T *at(const AttentionTensor<T> &t, int64_t b, int64_t row, int64_t head) {
  return t.data + b * t.batchStride + row * t.rowStride + head * t.headStride;
}

} // namespace
} // namespace hydra::runtime::HYDRA_CPU_LEVEL
