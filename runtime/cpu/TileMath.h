// Vectors of 16 floats, exp2, and matmuls of small row-major tiles, for code that is built once
// for each CPU level. Everything is in a namespace of that level and uses no inline function of the
// standard library: the linker would be free to keep the copy of the highest level for all.
#pragma once

#include "runtime/cpu/Attention.h"

#include <cstdint>

#if defined(__AVX512F__)
#define HYDRA_CPU_LEVEL v4
#define HYDRA_CPU_LEVEL_NAME "x86-64-v4"
#elif defined(__AVX2__) && defined(__FMA__)
#define HYDRA_CPU_LEVEL v3
#define HYDRA_CPU_LEVEL_NAME "x86-64-v3"
#else
#define HYDRA_CPU_LEVEL baseline
#define HYDRA_CPU_LEVEL_NAME "baseline"
#endif
#define HYDRA_INLINE static inline __attribute__((always_inline))

namespace hydra::runtime::HYDRA_CPU_LEVEL {

/// Sixteen lanes at every level, so that sums over lanes associate alike.
using Vec = float __attribute__((vector_size(64)));
using IntVec = int32_t __attribute__((vector_size(64)));
constexpr int64_t lanes = 16;

template <typename T> HYDRA_INLINE T smaller(T a, T b) { return b < a ? b : a; }
template <typename T> HYDRA_INLINE T larger(T a, T b) { return a < b ? b : a; }
HYDRA_INLINE int64_t roundUp(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

HYDRA_INLINE Vec load(const float *from) {
  Vec v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
HYDRA_INLINE float widen(float x) { return x; }
HYDRA_INLINE float widen(BF16 x) { return __builtin_bit_cast(float, uint32_t(x.bits) << 16); }
HYDRA_INLINE Vec load(const BF16 *from) {
  using Halves = uint16_t __attribute__((vector_size(32)));
  using Words = uint32_t __attribute__((vector_size(64)));
  Halves halves;
  __builtin_memcpy(&halves, from, sizeof halves);
  return (Vec)(__builtin_convertvector(halves, Words) << 16);
}
HYDRA_INLINE float widen(int8_t x) { return static_cast<float>(x); }
HYDRA_INLINE IntVec loadBytes(const int8_t *from) {
  using Bytes = int8_t __attribute__((vector_size(16)));
  Bytes bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, IntVec);
}
HYDRA_INLINE Vec load(const int8_t *from) { return __builtin_convertvector(loadBytes(from), Vec); }
HYDRA_INLINE float widen(F16 x) { return static_cast<float>(__builtin_bit_cast(_Float16, x)); }
HYDRA_INLINE Vec load(const F16 *from) {
  using Halves = _Float16 __attribute__((vector_size(32)));
  Halves halves;
  __builtin_memcpy(&halves, from, sizeof halves);
  return __builtin_convertvector(halves, Vec);
}
/// The nearest number of the type, ties to even; nans stay nans.
HYDRA_INLINE void assign(float &to, float x) { to = x; }
HYDRA_INLINE void assign(BF16 &to, float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  to.bits = static_cast<uint16_t>(x == x ? nearest : bits >> 16 | 0x40);
}
HYDRA_INLINE void assign(F16 &to, float x) {
  to.bits = __builtin_bit_cast(uint16_t, static_cast<_Float16>(x));
}
HYDRA_INLINE void store(float *to, Vec v) { __builtin_memcpy(to, &v, sizeof v); }
HYDRA_INLINE Vec splat(float x) { return x - Vec{}; }
HYDRA_INLINE IntVec splat(int32_t x) { return x - IntVec{}; }
HYDRA_INLINE Vec vectorMax(Vec a, Vec b) { return a < b ? b : a; }

/// ((l0+l8)+(l4+l12)) + ... : one fixed tree.
HYDRA_INLINE float sumLanes(Vec v) {
  float l[lanes];
  store(l, v);
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i)
      l[i] += l[i + width];
  return l[0];
}

/// 2^x to 2 units in the last place; 0 below -126 (so for minus infinity), unspecified above 127.
/// x = n + f, |f| <= 1/2; 2^f by the polynomial of degree 6 with the least relative error (2e-9).
HYDRA_INLINE Vec exp2(Vec x) {
  const Vec magic = splat(0x1.8p23f); // adding it rounds to an integer, found in the low bits
  const Vec clamped = vectorMax(x, splat(-126.0f));
  const Vec shifted = clamped + magic;
  const Vec f = clamped - (shifted - magic);
  Vec p = splat(1.5345812e-4f);
  p = p * f + splat(1.33999312e-3f);
  p = p * f + splat(9.61848896e-3f);
  p = p * f + splat(5.55032878e-2f);
  p = p * f + splat(2.40226469e-1f);
  p = p * f + splat(6.93147206e-1f);
  p = p * f + splat(1.0f);
  const Vec result = (Vec)((IntVec)p + ((IntVec)shifted << 23));
  return x < splat(-126.0f) ? Vec{} : result;
}

/// For each row of a tile: the half-open range of positions in the other dimension that matter.
/// Neither bound ever falls from one row to the next.
struct Bounds {
  int32_t begin[64], end[64];
};

/// Registers: rows x vectors of sums, beside the vectors of b and one broadcast of a.
#if defined(__AVX512F__)
constexpr int maxVectors = 4; // 32 registers of 64 bytes: 6 x 4, or 8 rows of fewer
constexpr int rowsFor(int vectors) { return vectors == 4 ? 6 : 8; }
#elif defined(__AVX2__)
constexpr int maxVectors = 1; // 16 registers of 32 bytes: 6 x 2
constexpr int rowsFor(int) { return 6; }
#else
constexpr int maxVectors = 1; // 16 registers of 16 bytes: 3 x 4
constexpr int rowsFor(int) { return 3; }
#endif
constexpr int maxRows = 8;

/// c (+)= a b for `Rows` rows and `Vectors` * 16 columns. Each sum runs over k in order.
template <int Rows, int Vectors, bool TransposedA, bool Accumulate>
static void matmulBlock(const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
                        int64_t ldc, int64_t k) {
  Vec sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sums[r][v] = Accumulate ? load(c + r * ldc + v * lanes) : Vec{};
  for (int64_t i = 0; i < k; ++i) {
    Vec row[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      row[v] = load(b + i * ldb + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec factor = splat(TransposedA ? a[i * lda + r] : a[r * lda + i]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += factor * row[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      store(c + r * ldc + v * lanes, sums[r][v]);
}

/// The same for a number of rows that is known only now.
template <int Vectors, bool TransposedA, bool Accumulate>
HYDRA_INLINE void matmulRows(int64_t rows, const float *a, int64_t lda, const float *b, int64_t ldb,
                             float *c, int64_t ldc, int64_t k) {
  switch (rows) {
#define HYDRA_ROWS(R)                                                                              \
  case R:                                                                                          \
    if constexpr (R <= rowsFor(Vectors))                                                           \
      matmulBlock<R, Vectors, TransposedA, Accumulate>(a, lda, b, ldb, c, ldc, k);                 \
    break;
    HYDRA_ROWS(1)
    HYDRA_ROWS(2)
    HYDRA_ROWS(3)
    HYDRA_ROWS(4)
    HYDRA_ROWS(5)
    HYDRA_ROWS(6)
    HYDRA_ROWS(7)
    HYDRA_ROWS(8)
#undef HYDRA_ROWS
  default:
    break;
  }
}

/// What the bounds of a row limit: the columns of c that are computed, or the k that are summed.
enum class Limit { Columns, K };

/// c = a b (Limit::Columns) or c += a b (Limit::K), with a rows x k (or its transpose, k x rows), b
/// k x columns, c rows x columns, and columns a multiple of 16. The bounds hold for groups of rows,
/// and columns are rounded out to 16: what lies outside may be computed too.
template <Limit limit, bool TransposedA>
static void matmul(int64_t rows, int64_t columns, int64_t k, const float *a, int64_t lda,
                   const float *b, int64_t ldb, float *c, int64_t ldc, const Bounds &bounds) {
  constexpr bool accumulate = limit == Limit::K;
  for (int64_t column = 0; column < columns;) {
    const int64_t vectors = smaller<int64_t>(maxVectors, (columns - column) / lanes);
    const int64_t panelEnd = column + vectors * lanes;
    const int64_t step = rowsFor(static_cast<int>(vectors));
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t count = smaller(step, rows - row);
      const int64_t from = bounds.begin[row], to = bounds.end[row + count - 1];
      int64_t first = column, last = panelEnd, kBegin = 0, kEnd = k;
      if (limit == Limit::Columns) {
        first = larger(column, from / lanes * lanes);
        last = smaller(panelEnd, roundUp(to, lanes));
      } else {
        kBegin = from;
        kEnd = to;
      }
      const float *aBlock = TransposedA ? a + kBegin * lda + row : a + row * lda + kBegin;
      const float *bBlock = b + kBegin * ldb + first;
      float *cBlock = c + row * ldc + first;
      if (kBegin >= kEnd)
        continue;
#define HYDRA_VECTORS(V)                                                                           \
  case V:                                                                                          \
    if constexpr (V <= maxVectors)                                                                 \
      matmulRows<V, TransposedA, accumulate>(count, aBlock, lda, bBlock, ldb, cBlock, ldc,         \
                                             kEnd - kBegin);                                       \
    break;
      switch (last <= first ? 0 : (last - first) / lanes) {
        HYDRA_VECTORS(1)
        HYDRA_VECTORS(2)
        HYDRA_VECTORS(3)
        HYDRA_VECTORS(4)
      default:
        break;
      }
#undef HYDRA_VECTORS
    }
    column = panelEnd;
  }
}

} // namespace hydra::runtime::HYDRA_CPU_LEVEL
