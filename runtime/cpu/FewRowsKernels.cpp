// Few rows times a matrix, built once for each CPU level (see CMakeLists.txt).
//
// Computes c = a wT, some rows of w at a time times a few of a, which stay in the cache. Traffic: w
// once. Limit: memory, or the rate of multiply-adds where w was in a cache and rows are many.
#include "runtime/cpu/FewRows.h"

#include "runtime/cpu/TileMath.h"

namespace hydra::runtime::HYDRA_CPU_LEVEL {
namespace {

// Registers: a sum for each pair of rows, beside the rows.
#if defined(__AVX512F__)
constexpr int rowsOfA = 4, rowsOfW = 4;
#elif defined(__AVX2__)
constexpr int rowsOfA = 2, rowsOfW = 2; // a vector is two registers
#else
constexpr int rowsOfA = 1, rowsOfW = 2; // four
#endif

/// The last elements of a row, and zeros.
template <typename T> HYDRA_INLINE Vec loadPart(const T *from, int64_t count) {
  float part[lanes] = {};
  for (int64_t i = 0; i < count; ++i)
    part[i] = widen(from[i]);
  return load(part);
}

/// Halves are added to each other until one is left: the tree of `sumLanes`.
HYDRA_INLINE float sumOf(Vec v) {
  const auto a = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto b =
      __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
  const auto c = __builtin_shufflevector(b, b, 0, 1) + __builtin_shufflevector(b, b, 2, 3);
  return c[0] + c[1];
}

/// Rows of a times rows of w; each sum is of lanes, along k in order. `first` also asks for the
/// rows of w behind these: the hardware sees where a row goes on, and not where the next ones
/// begin.
template <typename T, typename C, int RowsA, int RowsW>
void multiplyRows(const FewRowsShape &s, const float *a, const T *w, const C *bias, C *c,
                  bool first) {
  Vec sums[RowsA][RowsW] = {};
  const auto add = [&](int64_t k, auto loadOf) {
    Vec x[RowsA];
    for (int i = 0; i < RowsA; ++i)
      x[i] = load(a + i * s.strideA + k);
    for (int j = 0; j < RowsW; ++j) {
      const Vec y = loadOf(w + j * s.strideW + k);
      for (int i = 0; i < RowsA; ++i)
        sums[i][j] += x[i] * y;
    }
  };
  const int64_t whole = s.k / lanes * lanes;
  constexpr int64_t line = 64 / sizeof(T);
  for (int64_t k = 0; k < whole; k += lanes) {
    if (first && k % line == 0)
      for (int j = 0; j < RowsW; ++j)
        __builtin_prefetch(w + (j + RowsW) * s.strideW + k);
    add(k, [](const T *from) { return load(from); });
  }
  if (whole < s.k)
    add(whole, [&](const T *from) { return loadPart(from, s.k - whole); });
  for (int i = 0; i < RowsA; ++i)
    for (int j = 0; j < RowsW; ++j)
      assign(c[i * s.strideC + j], sumOf(sums[i][j]) + (bias ? widen(bias[j]) : 0.0f));
}

/// All rows of a, `RowsA` at a time and the rest fewer.
template <typename T, typename C, int RowsA, int RowsW>
void multiplyAll(const FewRowsShape &s, const float *a, const T *w, const C *bias, C *c,
                 int64_t i = 0) {
  for (; i + RowsA <= s.m; i += RowsA)
    multiplyRows<T, C, RowsA, RowsW>(s, a + i * s.strideA, w, bias, c + i * s.strideC, i == 0);
  if constexpr (RowsA > 1)
    multiplyAll<T, C, RowsA - 1, RowsW>(s, a, w, bias, c, i);
}

template <typename T, typename C>
void multiply(const FewRowsShape &s, const float *a, const T *w, const C *bias, C *c, int64_t begin,
              int64_t end) {
  const auto biasAt = [&](int64_t j) { return bias ? bias + j : nullptr; };
  int64_t j = begin;
  for (; j + rowsOfW <= end; j += rowsOfW)
    multiplyAll<T, C, rowsOfA, rowsOfW>(s, a, w + j * s.strideW, biasAt(j), c + j);
  for (; j < end; ++j)
    multiplyAll<T, C, rowsOfA, 1>(s, a, w + j * s.strideW, biasAt(j), c + j);
}

} // namespace

const FewRowsBuild fewRowsBuild = {multiply<float, float>, multiply<BF16, BF16>,
                                   multiply<BF16, float>, multiply<F16, F16>, multiply<F16, float>};

} // namespace hydra::runtime::HYDRA_CPU_LEVEL
