// Few rows times a matrix, which is read once: what adds a token to a text.
#pragma once

#include "runtime/calls/MatmulCall.h"
#include "runtime/cpu/Attention.h"
#include "runtime/cpu/ThreadPool.h"
#include "runtime/cpu/WorkerScratch.h"

namespace hydra::runtime {

constexpr int64_t mostFewRows = 16;

/// The elements of a matrix, in elements from one to the next.
struct FewRowsStrides {
  int64_t row = 0, column = 0;
};

/// c[m, n] = sum over k of a[m, k] b[k, n], times scale[n] of integers b, plus bias[n]. Bytes of
/// two numbers have scales of groups instead, [n, k / support::kInt4Group]: see Int4Bytes.
struct FewRowsShape {
  int64_t m = 0, n = 0, k = 0;
  FewRowsStrides a, b, c;
};

/// Bytes of a matrix that have two numbers each (support::packInt4): columns lie in whole groups,
/// and strides of b count bytes.
struct Int4Bytes {
  int8_t byte;
};

/// What matrices of `T` are scaled by: each column, or of Int4Bytes each group, by a number of
/// bf16.
template <typename T> struct FewRowsScale {
  using Type = float;
};
template <> struct FewRowsScale<Int4Bytes> {
  using Type = BF16;
};

/// Whether a matmul is one: one matrix of at most 16 rows in f32, bf16 or f16, or with a weight of
/// i8. Nothing is asked of how operands lie, which hydra-assign-layouts changes and may not change
/// a bit by.
bool isFewRows(const MatmulSpec &spec);

/// What each build of FewRowsKernels.cpp gives: columns [begin, end) of c, of a matrix b of T and
/// results C; begin is a multiple of 16. The bias may be null. So may the scale, of integers alone:
/// sums of each column are multiplied by it before the bias is added.
template <typename T, typename C>
using FewRowsKernel = void (*)(const FewRowsShape &shape, const float *a, const T *b, const C *bias,
                               const typename FewRowsScale<T>::Type *scale, C *c, int64_t begin,
                               int64_t end);

/// Two ways of the same sums, in the same order. Of Int4Bytes only the first.
template <typename T, typename C> struct FewRowsKernels {
  /// Columns of b are dense, as the rows of a linear layer's weight are. Rows of a are dense, with
  /// zeros behind k up to a multiple of 16.
  FewRowsKernel<T, C> alongSums;
  /// Rows of b are dense.
  FewRowsKernel<T, C> acrossSums;
};

struct FewRowsBuild {
  FewRowsKernels<float, float> f32;
  FewRowsKernels<BF16, BF16> bf16;
  FewRowsKernels<BF16, float> bf16ToF32;
  FewRowsKernels<F16, F16> f16;
  FewRowsKernels<F16, float> f16ToF32;
  FewRowsKernels<int8_t, float> int8ToF32;
  FewRowsKernels<int8_t, BF16> int8ToBf16;
  FewRowsKernels<int8_t, F16> int8ToF16;
  FewRowsKernels<Int4Bytes, float> int4ToF32;
  FewRowsKernels<Int4Bytes, BF16> int4ToBf16;
  FewRowsKernels<Int4Bytes, F16> int4ToF16;
};

namespace baseline {
extern const FewRowsBuild fewRowsBuild;
}
namespace v3 {
extern const FewRowsBuild fewRowsBuild;
}
namespace v4 {
extern const FewRowsBuild fewRowsBuild;
}

/// Columns of c are shared out by shape alone, and the sum of each is of 16 lanes, along k in
/// order, whatever rows are beside it: its bits depend on neither threads, m nor how operands lie.
class FewRows {
public:
  /// Of a matmul that is one.
  explicit FewRows(const MatmulSpec &spec);

  size_t scratchBytesPerWorker() const;

  /// The scale is of f32, or of bf16 where the weight is packed.
  void run(const void *a, const void *b, const void *bias, const void *scale, void *c,
           ThreadPool &pool, const WorkerScratch &scratch) const;

private:
  /// a as kernels take it: where it lies, or a copy.
  const float *widened(const void *a, const WorkerScratch &scratch) const;

  FewRowsShape shape;
  support::DType rows, matrix, results; ///< a, b and c
  FewRowsStrides givenA;
  bool alongSums = false; ///< columns of b are dense
  bool copied = false;    ///< a is
  bool packed = false;    ///< b has two numbers in a byte
  int64_t columnsOfTask = 0;
};

} // namespace hydra::runtime
