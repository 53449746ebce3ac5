// Few rows times a matrix, built once for each CPU level (see CMakeLists.txt).
//
// Computes c = a b in two ways, by how b lies, and each element alike: 16 partial sums, of which
// number l adds up the products of k = l, l + 16, ... in order, and then the tree of `sumLanes`.
// Along sums: some columns of b at a time times a few rows of a, which stay in the cache. Across
// sums: 16 x 16 blocks of b times all rows of a. Traffic: b once. Limit: memory, or the rate of
// multiply-adds where b was in a cache and rows are many. Bytes of two numbers, along sums alone,
// are multiplied by the scales of their groups as they are widened, which is exact.
#include "runtime/cpu/FewRows.h"

#include "runtime/cpu/TileMath.h"
#include "runtime/support/Int4Groups.h"

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

template <typename T> using Scale = typename FewRowsScale<T>::Type;

/// A sum, of integers scaled, with the bias: column j from where both begin.
template <typename T, typename C>
HYDRA_INLINE void finish(C &to, float sum, const C *bias, const Scale<T> *scale, int64_t j) {
  if constexpr (__is_same(T, int8_t))
    sum *= scale[j];
  assign(to, sum + (bias ? widen(bias[j]) : 0.0f));
}

/// Adds to sums of lanes what rows of a times rows of w are, along k in order. `first` also asks
/// for the rows of w behind these: the hardware sees where a row goes on, and not where the next
/// ones begin.
template <typename T, int RowsA, int RowsW>
HYDRA_INLINE void addRows(const FewRowsShape &s, const float *a, const T *w, const Scale<T> *,
                          bool first, Vec (&sums)[RowsA][RowsW]) {
  const auto add = [&](int64_t k, auto loadOf) {
    Vec x[RowsA];
    for (int i = 0; i < RowsA; ++i)
      x[i] = load(a + i * s.a.row + k);
    for (int j = 0; j < RowsW; ++j) {
      const Vec y = loadOf(w + j * s.b.column + k);
      for (int i = 0; i < RowsA; ++i)
        sums[i][j] += x[i] * y;
    }
  };
  const int64_t whole = s.k / lanes * lanes;
  constexpr int64_t line = 64 / sizeof(T);
  for (int64_t k = 0; k < whole; k += lanes) {
    if (first && k % line == 0)
      for (int j = 0; j < RowsW; ++j)
        __builtin_prefetch(w + (j + RowsW) * s.b.column + k);
    add(k, [](const T *from) { return load(from); });
  }
  if (whole < s.k)
    add(whole, [&](const T *from) { return loadPart(from, s.k - whole); });
}

/// Of bytes of two numbers: each half of a group is a vector.
template <int RowsA, int RowsW>
HYDRA_INLINE void addRows(const FewRowsShape &s, const float *a, const Int4Bytes *w,
                          const BF16 *scale, bool first, Vec (&sums)[RowsA][RowsW]) {
  static_assert(support::kInt4Bytes == lanes);
  const int64_t groups = s.k / support::kInt4Group;
  constexpr int64_t groupsOfLine = 64 / support::kInt4Bytes;
  for (int64_t g = 0; g < groups; ++g) {
    if (first && g % groupsOfLine == 0)
      for (int j = 0; j < RowsW; ++j)
        __builtin_prefetch(w + (j + RowsW) * s.b.column + g * lanes);
    Vec lower[RowsA], upper[RowsA];
    for (int i = 0; i < RowsA; ++i) {
      const float *of = a + i * s.a.row + g * support::kInt4Group;
      lower[i] = load(of);
      upper[i] = load(of + lanes);
    }
    for (int j = 0; j < RowsW; ++j) {
      const IntVec bytes = loadBytes(&w[j * s.b.column + g * lanes].byte);
      const float of = widen(scale[j * groups + g]);
      const Vec x = __builtin_convertvector((bytes & 15) - 8, Vec) * of,
                y = __builtin_convertvector(bytes >> 4, Vec) * of;
      for (int i = 0; i < RowsA; ++i) {
        sums[i][j] += lower[i] * x;
        sums[i][j] += upper[i] * y;
      }
    }
  }
}

/// Rows of a times rows of w, the columns of b.
template <typename T, typename C, int RowsA, int RowsW>
void multiplyRows(const FewRowsShape &s, const float *a, const T *w, const C *bias,
                  const Scale<T> *scale, C *c, bool first) {
  Vec sums[RowsA][RowsW] = {};
  addRows(s, a, w, scale, first, sums);
  for (int i = 0; i < RowsA; ++i)
    for (int j = 0; j < RowsW; ++j)
      finish<T>(c[i * s.c.row + j * s.c.column], sumOf(sums[i][j]), bias, scale, j);
}

/// All rows of a, `RowsA` at a time and the rest fewer.
template <typename T, typename C, int RowsA, int RowsW>
void multiplyAll(const FewRowsShape &s, const float *a, const T *w, const C *bias,
                 const Scale<T> *scale, C *c, int64_t i = 0) {
  for (; i + RowsA <= s.m; i += RowsA)
    multiplyRows<T, C, RowsA, RowsW>(s, a + i * s.a.row, w, bias, scale, c + i * s.c.row, i == 0);
  if constexpr (RowsA > 1)
    multiplyAll<T, C, RowsA - 1, RowsW>(s, a, w, bias, scale, c, i);
}

template <typename T, typename C>
void multiplyAlong(const FewRowsShape &s, const float *a, const T *w, const C *bias,
                   const Scale<T> *scale, C *c, int64_t begin, int64_t end) {
  const int64_t scales = __is_same(T, Int4Bytes) ? s.k / support::kInt4Group : 1; // of a column
  const auto biasAt = [&](int64_t j) { return bias ? bias + j : nullptr; };
  const auto scaleAt = [&](int64_t j) { return scale ? scale + j * scales : nullptr; };
  int64_t j = begin;
  for (; j + rowsOfW <= end; j += rowsOfW)
    multiplyAll<T, C, rowsOfA, rowsOfW>(s, a, w + j * s.b.column, biasAt(j), scaleAt(j),
                                        c + j * s.c.column);
  for (; j < end; ++j)
    multiplyAll<T, C, rowsOfA, 1>(s, a, w + j * s.b.column, biasAt(j), scaleAt(j),
                                  c + j * s.c.column);
}

/// Lane l of all sums of 16 columns of b: with partial sums along the first index of the vectors,
/// the tree of `sumLanes` adds whole vectors.
HYDRA_INLINE Vec sumParts(Vec *parts) {
  for (int64_t width = lanes / 2; width > 0; width /= 2)
    for (int64_t l = 0; l < width; ++l)
      parts[l] += parts[l + width];
  return parts[0];
}

/// All rows of a times `columns` columns of b, at most 16. A block of 16 x 16 elements of b is
/// widened once for all rows; behind k there are zeros, as `multiplyRows` has them. Asks for the
/// next block: rows of b may lie so far apart that the hardware does not see where they go on.
template <typename T, typename C>
void multiplyPanel(const FewRowsShape &s, const float *a, const T *b, const C *bias,
                   const float *scale, C *c, int64_t columns) {
  Vec sums[mostFewRows][lanes] = {};
  for (int64_t k = 0; k < s.k; k += lanes) {
    const int64_t count = smaller(lanes, s.k - k);
    Vec block[lanes] = {};
    for (int64_t l = 0; l < count; ++l) {
      const T *row = b + (k + l) * s.b.row;
      __builtin_prefetch(row + lanes * s.b.row);
      block[l] = columns == lanes ? load(row) : loadPart(row, columns);
    }
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t l = 0; l < lanes; ++l) {
        const float factor = l < count ? a[i * s.a.row + (k + l) * s.a.column] : 0.0f;
        sums[i][l] += splat(factor) * block[l];
      }
  }
  for (int64_t i = 0; i < s.m; ++i) {
    float row[lanes];
    store(row, sumParts(sums[i]));
    for (int64_t j = 0; j < columns; ++j)
      finish<T>(c[i * s.c.row + j * s.c.column], row[j], bias, scale, j);
  }
}

template <typename T, typename C>
void multiplyAcross(const FewRowsShape &s, const float *a, const T *b, const C *bias,
                    const float *scale, C *c, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; j += lanes)
    multiplyPanel<T, C>(s, a, b + j, bias ? bias + j : nullptr, scale ? scale + j : nullptr,
                        c + j * s.c.column, smaller(lanes, end - j));
}

template <typename T, typename C>
constexpr FewRowsKernels<T, C> kernels = {multiplyAlong<T, C>, multiplyAcross<T, C>};
template <typename C>
constexpr FewRowsKernels<Int4Bytes, C> kernels<Int4Bytes, C> = {multiplyAlong<Int4Bytes, C>,
                                                                nullptr};

} // namespace

const FewRowsBuild fewRowsBuild = {
    kernels<float, float>,    kernels<BF16, BF16>,    kernels<BF16, float>,
    kernels<F16, F16>,        kernels<F16, float>,    kernels<int8_t, float>,
    kernels<int8_t, BF16>,    kernels<int8_t, F16>,   kernels<Int4Bytes, float>,
    kernels<Int4Bytes, BF16>, kernels<Int4Bytes, F16>};

} // namespace hydra::runtime::HYDRA_CPU_LEVEL
